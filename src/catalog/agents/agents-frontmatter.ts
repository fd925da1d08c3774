/**
 * The head of most files of agents is lines of words and one list of tools, `tools: [view, grep]`. Reading those without
 * YAML keeps the start of a session with a hundred agents in milliseconds; both ways say the same.
 */
import { plainFrontmatter } from "../../context/skills/frontmatter-fast.ts";
import { type Frontmatter, parseFrontmatter } from "../../lib/frontmatter.ts";

const MAX_HEAD_CHARACTERS = 8 * 1024;
const ITEM = /(?:[A-Za-z][\w./-]*|"[\w ./:*-]*")/.source;
const LIST_LINE = new RegExp(`^([A-Za-z][\\w-]*): \\[((?:${ITEM}(?:, ?${ITEM})*)?)\\]$`);
/** Where YAML would see more than a word. */
const MORE_THAN_A_WORD = /^(?:null|true|false)$/i;

export async function agentFrontmatter(text: string): Promise<Frontmatter> {
  return plainFrontmatter(text) ?? withLists(text) ?? (await parseFrontmatter(text));
}

/** Undefined when the head is more than plain lines and lists of words. */
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
