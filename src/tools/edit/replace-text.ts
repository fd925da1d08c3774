import { plural } from "../../lib/text.ts";
import { ToolError } from "../tool-error.ts";
import { whyNotFound } from "./not-found.ts";
import { type LineEnding, lineAt, listNumbers } from "./text-content.ts";

/**
 * Replaces the single occurrence of `oldText`. Text without carriage returns matches any line endings, because files
 * are shown without them. The new text takes over the line endings at its position.
 */
export function replaceText(
  text: string,
  { oldText, newText, path }: { oldText: string; newText: string; path: string },
): string {
  if (oldText === newText) throw new ToolError("old_str and new_str are the same: there is nothing to change.");
  if (oldText === "") {
    if (text === "" || text === "\ufeff") return text + newText;
    throw new ToolError("old_str is empty. Give the text to replace, or write the whole file with create.");
  }
  const verbatim = oldText.includes("\r");
  const plain = verbatim ? undefined : withoutReturns(text);
  const positions = occurrences(plain?.text ?? text, oldText);
  const [position] = positions;
  if (position === undefined) throw new ToolError(whyNotFound(text, { oldText, path }));
  if (positions.length > 1) {
    const lines = [...new Set(positions.map((offset) => lineAt(plain?.text ?? text, offset)))];
    const where = `${lines.length === 1 ? "on line" : "on lines"} ${listNumbers(lines, 10)}`;
    const remedy = "Nothing was changed. Add surrounding lines to old_str until it fits only one place.";
    throw new ToolError(`old_str occurs ${counted(positions.length)} in ${path}, ${where}. ${remedy}`);
  }
  const start = plain ? plain.original(position) : position;
  const end = plain ? plain.original(position + oldText.length) : position + oldText.length;
  const added = verbatim ? newText : withEnding(newText, endingNear(text, start));
  return text.slice(0, start) + added + text.slice(end);
}

const MAX_OCCURRENCES = 1000;

const counted = (count: number): string =>
  count >= MAX_OCCURRENCES ? `${MAX_OCCURRENCES} or more times` : plural(count, "time");

function occurrences(text: string, wanted: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    if (found.push(at) >= MAX_OCCURRENCES) break;
  }
  return found;
}

/**
 * Returns the text with `
 * ` line endings, and a mapping of its offsets to the original.
 */
function withoutReturns(text: string): { text: string; original(offset: number): number } {
  if (!text.includes("\r\n")) return { text, original: (offset) => offset };
  const parts = text.split("\r\n");
  // Offsets in the shorter text of line breaks that lost a carriage return.
  const breaks: number[] = [];
  let length = 0;
  for (const part of parts.slice(0, -1)) {
    length += part.length;
    breaks.push(length);
    length += 1;
  }
  return { text: parts.join("\n"), original: (offset) => offset + countBelow(breaks, offset) };
}

/** Returns how many of the sorted numbers are below the limit. */
function countBelow(sorted: readonly number[], limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the line ending at the offset: that of its own line, else of the last line break. */
function endingNear(text: string, offset: number): LineEnding {
  const own = text.indexOf("\n", offset);
  const at = own === -1 ? text.lastIndexOf("\n") : own;
  return at > 0 && text[at - 1] === "\r" ? "\r\n" : "\n";
}

function withEnding(text: string, ending: LineEnding): string {
  return ending === "\n" ? text : text.replace(/\r?\n/g, "\r\n");
}
