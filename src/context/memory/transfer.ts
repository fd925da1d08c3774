/** Exports and imports facts. Both check for secrets again. */
import type { Redactor } from "../../lib/redact/redact.ts";
import { contentProblem, holdsSecret } from "./content.ts";
import { type Fact, type FactDraft, type MemoryScope, memoryLimits } from "./memory.ts";
import { parseLines } from "./repository-file.ts";

export interface Export {
  /** One JSON object per line, in a stable order. */
  readonly text: string;
  /** Ids of facts that contain a secret known today. */
  readonly withheld: readonly string[];
}

export function exportFacts(facts: readonly Fact[], redactor: Redactor): Export {
  const sorted = [...facts].sort(byAge);
  const withheld = sorted.filter((fact) => holdsSecret(fact, redactor) || isMasked(fact, redactor));
  const shown = sorted.filter((fact) => !withheld.includes(fact));
  return {
    text: shown.map((fact) => `${JSON.stringify(exported(fact))}\n`).join(""),
    withheld: withheld.map(({ id }) => id),
  };
}

export interface Import {
  readonly drafts: readonly FactDraft[];
  readonly refused: readonly { readonly subject: string; readonly problem: string }[];
  readonly notices: readonly string[];
}

/** Imports all facts as proposals, whatever the file says: others may have written it. */
export function importFacts(
  text: string,
  { name, scope, redactor }: { name: string; scope: MemoryScope; redactor: Redactor },
): Import {
  const { records, notices } = parseLines(text, name);
  const drafts: FactDraft[] = [];
  const refused: Import["refused"][number][] = [];
  for (const { id: _, ...content } of records) {
    const problem = contentProblem(content, redactor);
    if (problem === undefined) {
      const source = { kind: "import" as const, detail: name.slice(-200) };
      drafts.push({ ...content, scope, author: "import", source, status: "proposed" });
    } else refused.push({ subject: redactor.text(content.subject).slice(0, memoryLimits.subject), problem });
  }
  return { drafts, refused, notices };
}

export function byAge(one: Fact, other: Fact): number {
  return one.createdAt.localeCompare(other.createdAt) || one.id.localeCompare(other.id);
}

/** Omits the memory space and the voters, which are private to this machine. */
function exported({ place: _, votes: { up, down }, ...fact }: Fact): object {
  return { ...fact, votes: { up, down } };
}

function isMasked(fact: Fact, redactor: Redactor): boolean {
  const shown = exported(fact);
  return redactor.json(shown) !== shown;
}
