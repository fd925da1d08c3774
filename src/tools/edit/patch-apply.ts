import { ToolError } from "../tool-error.ts";
import type { Hunk } from "./patch.ts";
import { type LineEnding, listNumbers, splitLines, type TextLine } from "./text-content.ts";

/**
 * Applies the hunks in order. Context lines keep the text of the file. Only removed lines are dropped, and added lines
 * use the line endings around them. `notes` lists where white space was ignored to find a match.
 */
export function applyHunks(
  text: string,
  { hunks, path }: { hunks: readonly Hunk[]; path: string },
): { text: string; notes: string[] } {
  const mark = text.startsWith("\ufeff") ? "\ufeff" : "";
  const lines = splitLines(text.slice(mark.length));
  const hadFinalBreak = lines.length === 0 || lines.at(-1)?.ending !== "";
  const notes: string[] = [];
  const result: TextLine[] = [];
  let done = 0;
  for (const [index, hunk] of hunks.entries()) {
    const name = `change ${index + 1} of ${path} (line ${hunk.patchLine} of the patch)`;
    const { at, loose } = locate(lines, { hunk, from: done, name });
    if (loose) notes.push(`${name} fits line ${at + 1} only when white space is ignored; check the indentation.`);
    result.push(...lines.slice(done, at));
    done = at;
    for (const { kind, text: wanted } of hunk.lines) {
      if (kind === "add") result.push({ text: wanted, ending: endingAt(lines, done) });
      else {
        const line = lines[done++];
        if (line && kind === "keep") result.push(line);
      }
    }
  }
  result.push(...lines.slice(done));
  const finalBreak = hunks.at(-1)?.finalBreak ?? hadFinalBreak;
  return { text: mark + joinLines(result, finalBreak), notes };
}

/** Comparisons from strict to loose: exact, without trailing white space, then with white space collapsed. */
const comparisons: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.replace(/\s+/g, " ").trim(),
];

function locate(
  lines: readonly TextLine[],
  { hunk, from, name }: { hunk: Hunk; from: number; name: string },
): { at: number; loose: boolean } {
  const start = hunk.anchors.reduce((at, anchor) => behindAnchor(lines, { anchor, from: at, name }), from);
  const wanted = hunk.lines.filter(({ kind }) => kind !== "add").map(({ text }) => text);
  if (wanted.length === 0) return { at: insertionPoint(lines, { hunk, start, from }), loose: false };
  for (const [level, same] of comparisons.entries()) {
    const positions = matches(lines, { wanted: wanted.map(same), from: start, same, atEnd: hunk.atEnd });
    const at = choose(positions, { hunk, name });
    if (at !== undefined) return { at, loose: level > 0 };
  }
  throw new ToolError(`${name} does not fit: ${nearMiss(lines, wanted, start)} Nothing was changed.`);
}

function behindAnchor(
  lines: readonly TextLine[],
  { anchor, from, name }: { anchor: string; from: number; name: string },
): number {
  for (const same of comparisons) {
    const at = lines.findIndex((line, index) => index >= from && same(line.text) === same(anchor));
    if (at !== -1) return at + 1;
  }
  throw new ToolError(`${name}: the line "${anchor}" after @@ is not in the file. Nothing was changed.`);
}

function insertionPoint(
  lines: readonly TextLine[],
  { hunk, start, from }: { hunk: Hunk; start: number; from: number },
): number {
  if (hunk.anchors.length > 0) return start;
  if (hunk.startLine === undefined || hunk.atEnd) return lines.length;
  return Math.min(Math.max(hunk.startLine - 1, from), lines.length);
}

function matches(
  lines: readonly TextLine[],
  given: { wanted: readonly string[]; from: number; same: (line: string) => string; atEnd: boolean },
): number[] {
  const { wanted, from, same, atEnd } = given;
  const have = lines.map(({ text }) => same(text));
  const last = have.length - wanted.length;
  const found: number[] = [];
  for (let at = atEnd ? Math.max(from, last) : from; at <= last; at++) {
    if (wanted.every((line, index) => have[at + index] === line)) found.push(at);
  }
  return found;
}

/** Chooses between several matches by an anchor or a line number. Throws when the patch has neither. */
function choose(positions: readonly number[], { hunk, name }: { hunk: Hunk; name: string }): number | undefined {
  const [first] = positions;
  if (positions.length < 2 || hunk.anchors.length > 0) return first;
  const goal = hunk.startLine;
  if (goal !== undefined) {
    return [...positions].sort((one, other) => Math.abs(one + 1 - goal) - Math.abs(other + 1 - goal))[0];
  }
  const where = listNumbers(positions.map((at) => at + 1));
  const remedy = "Add more lines around it, or a line such as `@@ function name` before it.";
  throw new ToolError(`${name} fits ${positions.length} places, on lines ${where}. ${remedy} Nothing was changed.`);
}

/** Describes the position where most of the wanted lines match, and the first line that does not. */
function nearMiss(lines: readonly TextLine[], wanted: readonly string[], from: number): string {
  const loose = (text: string): string => text.replace(/\s+/g, "");
  const first = loose(wanted[0] ?? "");
  const goal = wanted.map(loose);
  let best = { length: 0, at: -1 };
  for (let at = from; at < lines.length; at++) {
    if (loose(lines[at]?.text ?? "") !== first) continue;
    let length = 0;
    while (length < goal.length && loose(lines[at + length]?.text ?? "\u0000") === goal[length]) length++;
    if (length > best.length) best = { length, at };
  }
  if (best.at === -1)
    return `its first line, "${wanted[0] ?? ""}", is not in the file${from > 0 ? ` after line ${from}` : ""}.`;
  const line = best.at + best.length;
  const has = lines[line] ? `has "${lines[line].text}"` : "ends";
  return `it agrees with the file from line ${best.at + 1} on, but at line ${line + 1} the file ${has} where the patch has "${wanted[best.length] ?? ""}".`;
}

function endingAt(lines: readonly TextLine[], at: number): LineEnding {
  return lines[at]?.ending || lines[at - 1]?.ending || lines[0]?.ending || "\n";
}

function joinLines(lines: readonly TextLine[], finalBreak: boolean): string {
  const last = lines.length - 1;
  return lines
    .map(({ text, ending }, index) => {
      if (index === last && !finalBreak) return text;
      return text + (ending || lines[index - 1]?.ending || "\n");
    })
    .join("");
}
