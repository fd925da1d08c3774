/**
 * Typed results for programs. If a task declares a JSON Schema, the agent's last message is checked and the agent gets
 * a few chances to correct it. A result that stays invalid becomes a failure that includes the text.
 */
import * as z from "zod";
import { readJson } from "../../hooks/bounded-json.ts";
import { isObject, type Json } from "../../lib/json.ts";
import { quoted } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import instruction from "./typed-output.md";
import repair from "./typed-output-repair.md";
import { type StrictSchema, strictSchema } from "./typed-output-schema.ts";

export interface OutputContract {
  /** For the end of the agent's prompt. */
  readonly instruction: string;
  check(text: string): Promise<TypedOutput>;
}

type TypedOutput =
  | { readonly ok: true; readonly value: Json }
  /** `problem` is worded for the agent; `payload` is the text that it sent. */
  | { readonly ok: false; readonly problem: string; readonly payload: string };

/** Throws a `TroupeError` for a schema that cannot be checked completely, because it would accept too much. */
export function outputContract(schema: unknown): OutputContract {
  const strict = strictSchema(schema);
  const parser = parserOf(strict);
  return {
    instruction: instruction.replace("{{schema}}", () => quoted(JSON.stringify(schema))).trim(),
    check: (text) => check(text, parser),
  };
}

function parserOf(schema: StrictSchema): z.ZodType {
  try {
    return z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema);
  } catch (error) {
    const reason = error instanceof RangeError ? "it refers to itself without end" : (error as Error).message;
    throw new TroupeError("configuration", `The output schema cannot be checked: ${clip(reason, 300)}.`, {
      hint: "Use a simpler schema: objects, arrays, strings, numbers, enums, anyOf, local $ref.",
    });
  }
}

export const MAX_REPAIRS = 2;

export function repairMessage(problem: string, left: number): string {
  return repair
    .replace("{{problem}}", () => quoted(problem))
    .replace("{{left}}", String(left))
    .trim();
}

const MAX_TEXT_CHARACTERS = 1024 * 1024;
const MAX_PAYLOAD_CHARACTERS = 100_000;

async function check(text: string, parser: z.ZodType): Promise<TypedOutput> {
  const failed = (problem: string): TypedOutput => ({
    ok: false,
    problem,
    payload: clip(text, MAX_PAYLOAD_CHARACTERS),
  });
  if (text.length > MAX_TEXT_CHARACTERS) return failed(`It has more than ${MAX_TEXT_CHARACTERS} characters.`);
  const found = extractJson(text);
  if (!found.ok) return failed(found.error);
  if (!isObject(found.value)) return failed("The JSON in it is not an object.");
  const { value } = found;
  const result = await inTime(() => parser.safeParse(value));
  if (result === "too long") return failed("It takes too long to compare with the schema; make it smaller.");
  // The parsed value, completed with the schema's defaults.
  return result.success ? { ok: true, value: result.data as Json } : failed(issuesText(result.error));
}

const MAX_ISSUES = 10;
const MAX_PROBLEM_CHARACTERS = 2_000;

function issuesText({ issues }: z.ZodError): string {
  const lines = issues.slice(0, MAX_ISSUES).map(({ path, message }) => {
    const where = path.length === 0 ? "the object" : path.map(String).join(".");
    return `- ${clip(where, 200)}: ${clip(message, 300)}`;
  });
  const more = issues.length > MAX_ISSUES ? [`- and ${issues.length - MAX_ISSUES} more`] : [];
  return clip([...lines, ...more].join("\n"), MAX_PROBLEM_CHARACTERS);
}

const MAX_CHECK_MS = 1_000;

/**
 * Runs a check with a timeout. Regular expressions and nested alternatives can take too long, so the virtual machine
 * interrupts them.
 */
async function inTime<T>(work: () => T): Promise<T | "too long"> {
  const { runInNewContext } = await import("node:vm");
  try {
    return runInNewContext("work()", { work }, { timeout: MAX_CHECK_MS }) as T;
  } catch (error) {
    const isLate =
      error instanceof RangeError || (error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
    if (isLate) return "too long";
    throw error;
  }
}

/** Reads the whole text, the last fenced block, or an object from the start of a line to the last brace. */
function extractJson(text: string): ReturnType<typeof readJson> {
  const whole = text.trim();
  if (whole.startsWith("{")) {
    const read = readJson(whole);
    if (read.ok) return read;
  }
  const block = lastBlock(text);
  if (block !== undefined) {
    const read = readJson(block);
    return read.ok ? read : { ok: false, error: `The last block of code cannot be read: ${read.error}.` };
  }
  return bareObject(whole);
}

const MAX_LINES = 100_000;

function lastBlock(text: string): string | undefined {
  let open: { fence: string; isJson: boolean; lines: string[] } | undefined;
  let last: { text: string; isJson: boolean } | undefined;
  for (const line of text.split("\n", MAX_LINES)) {
    const [, fence = "", language = ""] = /^\s{0,3}(`{3,}|~{3,})\s*(\w*)\s*$/.exec(line) ?? [];
    if (open === undefined) {
      if (fence !== "") open = { fence, isJson: /^jsonc?$/i.test(language), lines: [] };
    } else if (fence.startsWith(open.fence) && language === "") {
      const isBetter = last === undefined || open.isJson || !last.isJson;
      if (isBetter) last = { text: open.lines.join("\n"), isJson: open.isJson };
      open = undefined;
    } else open.lines.push(line);
  }
  // An unclosed block extends to the end of the message.
  return open?.isJson ? open.lines.join("\n") : last?.text;
}

const MAX_STARTS = 20;

function bareObject(text: string): ReturnType<typeof readJson> {
  const end = text.lastIndexOf("}");
  const starts = [...text.matchAll(/^[ \t]*\{/gm)].map(({ index }) => index).slice(0, MAX_STARTS);
  const first = text.indexOf("{");
  const candidates = [...new Set([...starts, ...(first < 0 ? [] : [first])])];
  for (const start of candidates) {
    const read = start < end ? readJson(text.slice(start, end + 1).trim()) : undefined;
    if (read?.ok) return read;
  }
  return { ok: false, error: "There is no JSON object in it." };
}
