/** Any value that survives a JSON round trip unchanged. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Parses untrusted text. The caller decides what a failure means. */
export function parseJson(text: string): { ok: true; value: Json } | { ok: false; error: string } {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Returns " (line 3)", to append to "is not JSON". Empty for a single line, or if the parser does not report the
 * position.
 */
export function jsonErrorPosition(text: string): string {
  if (!text.trim().includes("\n")) return "";
  const parsed = parseJson(text);
  const at = parsed.ok ? undefined : troubleOffset(text, parsed.error);
  return at === undefined ? "" : ` (line ${text.slice(0, at).split("\n").length})`;
}

function troubleOffset(text: string, error: string): number | undefined {
  const position = /at position (\d+)/.exec(error)?.[1];
  if (position !== undefined) return Number(position);
  if (error.includes("end of JSON input")) return text.trimEnd().length;
  // Otherwise the engine quotes the text around the position, up to ten characters on each side.
  const [, before, quote = "", after] = /, (\.{3})?"(.*?)"(\.{3})? is not valid JSON$/s.exec(error) ?? [];
  const start = quote === "" ? -1 : text.indexOf(quote);
  if (start < 0 || start !== text.lastIndexOf(quote)) return undefined;
  if (before !== undefined) return start + 10;
  return after === undefined ? undefined : Math.max(0, quote.length - 11);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Names that are not plain members once a value is copied: refused in untrusted JSON. */
export const prototypeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Whether JSON text is nested more than `depth` levels. Counts before parsing. */
export function isDeeperThan(text: string, depth: number): boolean {
  return isHeavierThan(text, { depth, marks: Number.POSITIVE_INFINITY });
}

/**
 * Whether parsing JSON text would exceed the caller's limits: levels of nesting, or `marks`, the commas, colons and
 * opening brackets outside strings. Those cost time and memory; a long string alone is cheap.
 */
export function isHeavierThan(text: string, limits: { readonly depth: number; readonly marks: number }): boolean {
  let open = 0;
  let marks = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++open > limits.depth || ++marks > limits.marks) return true;
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      open--;
    } else if ((code === COMMA || code === COLON) && ++marks > limits.marks) {
      return true;
    }
  }
  return false;
}

/** Returns the first of `prototypeKeys` that is a key anywhere in a parsed value. */
export function prototypeKeyIn(value: unknown): string | undefined {
  if (Array.isArray(value)) return firstFound(value);
  if (!isObject(value)) return undefined;
  return Object.keys(value).find((key) => prototypeKeys.has(key)) ?? firstFound(Object.values(value));
}

function firstFound(values: readonly unknown[]): string | undefined {
  for (const value of values) {
    const found = prototypeKeyIn(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the end of the string that starts at `start`; the end of the text if it is not closed. */
function endOfString(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at;
    at = text.indexOf('"', at + 1);
  }
  return text.length;
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

export const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");
