/** Parses the YAML block between two lines of `---` at the top of a Markdown file. The file is untrusted. */
import { isObject } from "./json.ts";

export interface Frontmatter {
  /** Plain values without prototype keys or cycles. Empty if there is no block, or if it is invalid. */
  readonly data: Record<string, unknown>;
  /** The text after the block; the whole text if there is no block. */
  readonly body: string;
  /** Why a block is invalid. The line is that of the file, from 1. */
  readonly problem?: { readonly line: number; readonly message: string };
}

/** Parsing hostile YAML of this size takes a tenth of a second; the time grows with the square. */
const MAX_CHARACTERS = 16 * 1024;
const MAX_ALIASES = 32;
const MAX_DEPTH = 16;
/** Far more than a user writes; see `nestsTooDeep`. */
const MAX_INDENTATION = 100;
const MAX_INDICATORS_IN_LINE = 50;
const MAX_BRACKETS = 32;
const MAX_VALUES = 5_000;
const MAX_MESSAGE_CHARACTERS = 200;
const REFUSED_KEYS = new Set(["__proto__", "constructor", "prototype"]);

/** Never throws, whatever the text is. YAML is loaded only if there is a block. */
export async function parseFrontmatter(text: string): Promise<Frontmatter> {
  const opening = /^\ufeff?---[ \t]*\r?\n/.exec(text)?.[0];
  if (opening === undefined) return { data: {}, body: text };
  const closing = /^---[ \t]*(?:\r?\n|$)/m.exec(text.slice(opening.length));
  if (closing === null) return unread(text, 1, "The frontmatter starts with --- but has no closing ---.");
  const end = opening.length + closing.index;
  const body = text.slice(end + closing[0].length);
  const block = text.slice(opening.length, end);
  if (block.length > MAX_CHARACTERS) {
    return unread(body, 1, `The frontmatter is longer than ${MAX_CHARACTERS / 1024} KiB.`);
  }
  if (nestsTooDeep(block)) return unread(body, 1, "The frontmatter is nested too deeply.");
  const strict = await parseYaml(block);
  if ("data" in strict) return { data: strict.data, body };
  const quoted = quotePlainValues(block);
  const lenient = quoted === block ? strict : await parseYaml(quoted);
  return "data" in lenient ? { data: lenient.data, body } : unread(body, strict.line + 1, strict.message);
}

function unread(body: string, line: number, message: string): Frontmatter {
  return { data: {}, body, problem: { line, message } };
}

/**
 * The YAML parser is recursive, and a stack overflow inside a regular expression ends the process: it cannot be caught.
 * So text that could nest deeply is refused before it is parsed.
 */
function nestsTooDeep(block: string): boolean {
  let brackets = 0;
  for (const character of block) {
    if (character === "[" || character === "{") brackets++;
    else if (character === "]" || character === "}") brackets = Math.max(0, brackets - 1);
    if (brackets > MAX_BRACKETS) return true;
  }
  return block.split(/[\r\n]/).some((line) => {
    const indentation = line.length - line.trimStart().length;
    return indentation > MAX_INDENTATION || (line.match(/[-?:](?=\s|$)/g)?.length ?? 0) > MAX_INDICATORS_IN_LINE;
  });
}

type Parsed = { readonly data: Record<string, unknown> } | { readonly line: number; readonly message: string };

async function parseYaml(block: string): Promise<Parsed> {
  const { parseDocument } = await import("yaml");
  try {
    const document = parseDocument(block, { schema: "core", prettyErrors: false, logLevel: "silent" });
    const [error] = document.errors;
    if (error) return { line: block.slice(0, error.pos[0]).split("\n").length, message: firstLine(error.message) };
    const data = plainCopy(document.toJS({ maxAliasCount: MAX_ALIASES }), { depth: 0, left: { values: MAX_VALUES } });
    if (data === null) return { data: {} };
    return isObject(data) ? { data } : { line: 1, message: "The frontmatter is not a list of `key: value` lines." };
  } catch (error) {
    return { line: 1, message: firstLine(error instanceof Error ? error.message : String(error)) };
  }
}

/** Throws for content that no honest file has: excessive nesting or aliases, and prototype keys. */
function plainCopy(value: unknown, at: { depth: number; left: { values: number } }): unknown {
  if (at.depth > MAX_DEPTH) throw new Error(`The frontmatter is nested more than ${MAX_DEPTH} levels deep.`);
  if (at.left.values-- <= 0) throw new Error(`The frontmatter holds more than ${MAX_VALUES} values.`);
  const inner = { depth: at.depth + 1, left: at.left };
  if (Array.isArray(value)) return value.map((item) => plainCopy(item, inner));
  if (!isObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (REFUSED_KEYS.has(key)) throw new Error(`The key ${key} is not allowed in frontmatter.`);
      return [key, plainCopy(item, inner)];
    }),
  );
}

/**
 * Users write `applyTo: **\/*.ts` and `description: Use when: asked`, which is not YAML. If strict parsing failed,
 * values on the same line as their key are read as plain text.
 */
function quotePlainValues(block: string): string {
  return block.replace(
    /^([A-Za-z][\w-]*):[ \t]+(?!["'[{|>&!\r\n])([^\r\n]*?)[ \t]*$(?!\r?\n[ \t]+\S)/gm,
    (_line, key: string, value: string) =>
      /^(?:true|false|null|~|-?\d+(?:\.\d+)?)$/.test(value) ? `${key}: ${value}` : `${key}: ${JSON.stringify(value)}`,
  );
}

function firstLine(message: string): string {
  return (message.split("\n")[0] ?? "").slice(0, MAX_MESSAGE_CHARACTERS);
}
