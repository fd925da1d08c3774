/** Validates facts: short, plain, and without secrets. */
import type { Redactor } from "../../lib/redact/redact.ts";
import { sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type FactContent, memoryLimits } from "./memory.ts";

const fields = ["subject", "fact", "citations", "reason"] as const;

/** Returns each field on one line, without invisible characters. Idempotent. */
export function plainContent({ subject, fact, citations, reason }: FactContent): FactContent {
  return { subject: plain(subject), fact: plain(fact), citations: plain(citations), reason: plain(reason) };
}

const plain = (text: string): string => sanitise(text).replace(/\s+/g, " ").trim();

/** Returns why this cannot be stored, or `undefined` if it can. */
export function contentProblem(content: FactContent, redactor: Redactor): string | undefined {
  for (const field of fields) {
    const { length } = content[field];
    if (length > memoryLimits[field]) return `${field} has ${length} characters; ${memoryLimits[field]} are allowed`;
  }
  if (content.subject === "" || content.fact === "") return "subject and fact must not be empty";
  if (holdsSecret(content, redactor)) return "it contains a secret";
  if (content.fact.replace(/\[redacted:[\w.-]+\]/g, "").trim().length < 3) return "it contains nothing but a secret";
  return undefined;
}

/** Also detects a secret that is spread over several fields. */
export function holdsSecret(content: FactContent, redactor: Redactor): boolean {
  const masked = redactor.json(pickContent(content));
  const isMasked = fields.some((field) => masked[field] !== content[field]);
  return isMasked || redactor.holdsSecret(fields.map((field) => content[field]).join(" "));
}

export function pickContent({ subject, fact, citations, reason }: FactContent): FactContent {
  return { subject, fact, citations, reason };
}

export function requireContent(given: FactContent, redactor: Redactor): FactContent {
  const content = plainContent(given);
  const problem = contentProblem(content, redactor);
  if (problem === undefined) return content;
  throw new TroupeError("usage", `This cannot be remembered: ${problem}.`, {
    hint: "Reword it in one or two sentences.",
  });
}

/** Returns a key. Facts with the same key count as duplicates. */
export function sameness(fact: string): string {
  return fact
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s.,;:!'"`]+/g, " ")
    .trim();
}
