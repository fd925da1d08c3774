/**
 * A fast parser for simple frontmatter. Nearly every SKILL.md starts with a few lines of `key: words`. Parsing those
 * without YAML lets a session with hundreds of skills start in milliseconds. Everything else goes to
 * `parseFrontmatter`; the results are the same.
 */
import { type Frontmatter, parseFrontmatter } from "../../lib/frontmatter.ts";

const OPENING = "---\n";
const MAX_BLOCK_CHARACTERS = 8 * 1024;
const PLAIN_LINE =
  /^([A-Za-z][\w-]*): (?:([A-Za-z][^\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]*)|"([ !#-[\]-~]*)")$/;
/** Matches values that YAML would not read as plain text: a mapping, a comment, a value of another type. */
const MORE_THAN_WORDS = /:(?: |$)| #| $|^(?:null|true|false|yes|no|on|off)$/i;
const REFUSED_KEYS = new Set(["constructor", "prototype"]);

export async function skillFrontmatter(text: string): Promise<Frontmatter> {
  return plainFrontmatter(text) ?? (await parseFrontmatter(text));
}

/** Returns `undefined` when the block has more than plain lines. */
export function plainFrontmatter(text: string): Frontmatter | undefined {
  if (!text.startsWith(OPENING)) return undefined;
  const end = text.indexOf("\n---\n", OPENING.length - 1);
  if (end < OPENING.length || end > MAX_BLOCK_CHARACTERS) return undefined;
  const data: Record<string, unknown> = {};
  for (const line of text.slice(OPENING.length, end).split("\n")) {
    const [, key = "", plain, quoted] = PLAIN_LINE.exec(line) ?? [];
    if (key === "" || REFUSED_KEYS.has(key) || Object.hasOwn(data, key)) return undefined;
    const isBoolean = plain === "true" || plain === "false";
    if (plain !== undefined && !isBoolean && MORE_THAN_WORDS.test(plain)) return undefined;
    data[key] = isBoolean ? plain === "true" : (plain ?? quoted);
  }
  return { data, body: text.slice(end + "\n---\n".length) };
}
