/**
 * Parses agent frontmatter. Most files have only plain lines and one list, `tools: [view, grep]`. Reading those without
 * YAML keeps the start of a session with a hundred agents within milliseconds. Both parsers give the same result.
 */
import { plainFrontmatter } from "../../context/skills/frontmatter-fast.ts";
import { type Frontmatter, parseFrontmatter } from "../../lib/frontmatter.ts";

const MAX_HEAD_CHARACTERS = 8 * 1024;
const ITEM = /(?:[A-Za-z][\w./-]*|"[\w ./:*-]*")/.source;
const LIST_LINE = new RegExp(`^([A-Za-z][\\w-]*): \\[((?:${ITEM}(?:, ?${ITEM})*)?)\\]$`);
/** Words that YAML would not read as text. */
const MORE_THAN_A_WORD = /^(?:null|true|false)$/i;

export async function agentFrontmatter(text: string): Promise<Frontmatter> {
  return plainFrontmatter(text) ?? withLists(text) ?? (await parseFrontmatter(text));
}

/** Returns undefined if the frontmatter has more than plain lines and lists of words. */
function withLists(text: string): Frontmatter | undefined {
  const end = text.indexOf("\n---\n");
  if (!text.startsWith("---\n") || end < 0 || end > MAX_HEAD_CHARACTERS) return undefined;
  const lists: Record<string, string[]> = {};
  const others: string[] = [];
  for (const line of text.slice(0, end).split("\n")) {
    const [, key, items] = LIST_LINE.exec(line) ?? [];
    const words = items === undefined ? undefined : wordsOf(items);
    if (key === undefined || words === undefined) others.push(line);
    else if (Object.hasOwn(lists, key) || key === "constructor" || key === "prototype") return undefined;
    else lists[key] = words;
  }
  const rest = plainFrontmatter(`${others.join("\n")}${text.slice(end)}`);
  const isTwice = rest === undefined || Object.keys(rest.data).some((key) => Object.hasOwn(lists, key));
  return isTwice ? undefined : { data: { ...rest.data, ...lists }, body: rest.body };
}

function wordsOf(items: string): string[] | undefined {
  const written = items === "" ? [] : items.split(/, ?/);
  if (written.some((item) => MORE_THAN_A_WORD.test(item))) return undefined;
  return written.map((item) => (item.startsWith('"') ? item.slice(1, -1) : item));
}
