/**
 * Parses the fields of a definition. Uses hand-written checks instead of a schema: a session start reads hundreds of
 * files, and validating a schema would take longer than reading them.
 */
import { isObject } from "../lib/json.ts";
import { type AgentLimits, type PromptPart, promptParts } from "./agent.ts";
import { readSidekick, sidekickShape } from "./sidekick.ts";

const MAX_ITEMS = 200;
const MAX_DEPTH = 32;
const MAX_VALUES = 10_000;
const REFUSED_KEYS = new Set(["__proto__", "constructor", "prototype"]);

/** Parses one field; `read` returns undefined for an invalid value. */
interface Field<T> {
  readonly expects: string;
  read(value: unknown): T | undefined;
}

const text: Field<string> = {
  expects: "text",
  read: (value) => (typeof value === "number" ? String(value) : typeof value === "string" ? value : undefined),
};
const truth: Field<boolean> = {
  expects: "true or false",
  read: (value) =>
    value === "true" ? true : value === "false" ? false : typeof value === "boolean" ? value : undefined,
};
const list: Field<readonly string[] | string> = {
  expects: `a list of at most ${MAX_ITEMS} texts, or text with commas between`,
  read: (value) => (typeof value === "string" || isTexts(value) ? value : undefined),
};
const plainMap: Field<Readonly<Record<string, unknown>>> = {
  expects: "a map of plain values",
  read: (value) => (isObject(value) && isPlain(value) ? value : undefined),
};
const oneOf = <const T extends string>(...choices: readonly T[]): Field<T> => ({
  expects: choices.join(" or "),
  read: (value) => choices.find((choice) => choice === value),
});

const fields = {
  name: text,
  displayName: text,
  description: text,
  prompt: text,
  tools: list,
  disallowedTools: list,
  readOnly: truth,
  mcpServers: plainMap,
  model: text,
  models: list,
  modelPolicy: oneOf("preferred", "required"),
  reasoningEffort: { expects: "one word such as low, medium or high", read: word },
  skills: list,
  userInvocable: truth,
  infer: truth,
  disableModelInvocation: truth,
  includeCustomInstructions: truth,
  promptParts: { expects: `some of ${promptParts.join(", ")}`, read: parts },
  limits: { expects: "a map of turns, tokens, costUsd and seconds, each a number above zero", read: limits },
  isolation: oneOf("worktree", "none"),
  placement: oneOf("elsewhere", "here"),
  outputSchema: plainMap,
  github: plainMap,
  sidekick: { expects: sidekickShape, read: readSidekick },
};

export type FieldName = keyof typeof fields;
/** The expected value of each field. */
export const fieldShapes = fields as Readonly<Record<FieldName, Pick<Field<unknown>, "expects">>>;
export type AgentFields = {
  readonly [N in Exclude<FieldName, "tools">]?: NonNullable<ReturnType<(typeof fields)[N]["read"]>>;
} & { readonly tools?: readonly string[] | string | null };

/** Fields of other products that have no effect here. */
const ignored = new Set(["color", "argumentHint", "handoffs", "metadata", "target"]);

export type CheckedFields =
  | {
      readonly ok: true;
      readonly fields: AgentFields;
      readonly unknown: readonly string[];
      /** Keys without a value, treated as absent. `tools` is not listed here: its missing value is reported as null. */
      readonly empty: readonly string[];
    }
  /** `key` is spelled as in the input. */
  | { readonly ok: false; readonly key: string; readonly message: string };

/** Validates all fields. Accepts names in kebab-case, snake_case and camelCase. */
export function checkFields(data: Readonly<Record<string, unknown>>): CheckedFields {
  const known = new Map<string, unknown>();
  const unknown: string[] = [];
  const empty: string[] = [];
  for (const [key, value] of Object.entries(data)) {
    const name = camel(key);
    if (!Object.hasOwn(fields, name)) {
      if (!ignored.has(name)) unknown.push(key);
      continue;
    }
    if (known.has(name)) return { ok: false, key, message: `${key} is given twice` };
    if (value === undefined || value === null) {
      if (name !== "tools") empty.push(key);
      else if (value === null) known.set(name, null);
      continue;
    }
    const { expects, read } = fields[name as FieldName];
    const fitting = read(value);
    if (fitting === undefined) return { ok: false, key, message: `${key}: this must be ${expects}` };
    known.set(name, fitting);
  }
  return { ok: true, fields: Object.fromEntries(known), unknown, empty };
}

export function splitList(value: readonly string[] | string): string[] {
  const items = typeof value === "string" ? value.split(",") : value;
  return [...new Set(items.map((item) => item.trim()).filter(Boolean))];
}

function word(value: unknown): string | undefined {
  return typeof value === "string" && /^[A-Za-z]{1,20}$/.test(value) ? value : undefined;
}

function parts(value: unknown): readonly PromptPart[] | undefined {
  const given = list.read(value);
  const wanted = given && splitList(given);
  const found = promptParts.filter((part) => wanted?.includes(part));
  return wanted?.length === found.length ? found : undefined;
}

function limits(value: unknown): AgentLimits | undefined {
  if (!isObject(value)) return undefined;
  const isFit = Object.entries(value).every(
    ([key, amount]) =>
      typeof amount === "number" &&
      amount > 0 &&
      (key === "costUsd" ? Number.isFinite(amount) : isWhole(key) && Number.isSafeInteger(amount)),
  );
  return isFit ? value : undefined;
}

const isWhole = (key: string): boolean => key === "turns" || key === "tokens" || key === "seconds";

const camel = (key: string): string => key.replace(/[-_]([a-z])/g, (_sign, letter: string) => letter.toUpperCase());

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= MAX_ITEMS && value.every((item) => typeof item === "string");
}

/** Reports whether the value is bounded in depth and size and has no keys that reach a prototype. */
function isPlain(value: unknown): boolean {
  let left = MAX_VALUES;
  const visit = (part: unknown, depth: number): boolean => {
    if (depth > MAX_DEPTH || left-- <= 0) return false;
    if (Array.isArray(part)) return part.every((item) => visit(item, depth + 1));
    if (!isObject(part)) return true;
    return Object.entries(part).every(([key, item]) => !REFUSED_KEYS.has(key) && visit(item, depth + 1));
  };
  return visit(value, 0);
}
