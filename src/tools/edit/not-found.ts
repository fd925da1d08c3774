import { REDACTED } from "../../lib/redact/redact.ts";
import { clip } from "../../lib/text.ts";
import { listNumbers, splitLines } from "./text-content.ts";

const MAX_COMPARED_LINES = 20_000;
const MAX_COMPARED_CHARACTERS = 400;
const MAX_SHOWN_LINES = 12;
const MAX_SHOWN_CHARACTERS = 200;
const SIMILAR = 0.6;

/** Explains why the text was not found, with enough detail for a second attempt without viewing the whole file. */
export function whyNotFound(text: string, { oldText, path }: { oldText: string; path: string }): string {
  const lines = splitLines(text).map((line) => line.text);
  const wanted = oldText.split(/\r?\n/);
  const parts = [`old_str was not found in ${path}; nothing was changed.`];

  if (REDACTED.test(oldText)) {
    parts.push("It contains [redacted:…], which stands for a hidden secret. Choose an old_str without the secret.");
    return parts.join(" ");
  }
  const unnumbered = wanted.map((line) => line.replace(/^\d+\. ?/, ""));
  if (
    wanted.every((line) => line === "" || /^\d+\./.test(line)) &&
    findLines(lines, unnumbered, spaceless).length > 0
  ) {
    parts.push("It begins its lines with the numbers that view shows, which are not part of the file: leave them out.");
    return parts.join(" ");
  }
  const loose = findLines(lines, wanted, spaceless);
  const [first] = loose;
  if (first !== undefined) {
    const found = lines.slice(first, first + wanted.length);
    parts.push(
      `Apart from white space it is on ${loose.length === 1 ? "line" : "lines"} ${listNumbers(oneBased(loose))}`,
    );
    return `${parts.join(" ")} (${differences(found, wanted)}). The file has:\n${numberLines(lines, first, wanted.length)}`;
  }
  const near = nearestLines(lines, wanted);
  if (near.length === 0) {
    parts.push("No line of the file resembles the first line of old_str. View the file, and copy the text exactly.");
    return parts.join(" ");
  }
  return `${parts.join(" ")} The most similar lines are:\n${near.map((index) => numberLines(lines, index, 1)).join("\n")}`;
}

/** Returns the indexes at which all wanted lines follow each other, compared after `same`. */
function findLines(lines: readonly string[], wanted: readonly string[], same: (line: string) => string): number[] {
  const goal = wanted.map(same);
  if (goal.every((line) => line === "")) return [];
  const have = lines.map(same);
  const found: number[] = [];
  for (let at = 0; at + goal.length <= have.length; at++) {
    const fits = goal.every((line, index) => {
      const candidate = have[at + index] ?? "";
      const isFirst = index === 0;
      const isLast = index === goal.length - 1;
      if (isFirst && isLast) return candidate.includes(line);
      if (isFirst) return candidate.endsWith(line);
      return isLast ? candidate.startsWith(line) : candidate === line;
    });
    if (fits) found.push(at);
  }
  return found;
}

const spaceless = (line: string): string => line.replace(/\s+/g, "");

function differences(found: readonly string[], wanted: readonly string[]): string {
  const lead = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? "";
  const reasons = new Set<string>();
  for (const [index, line] of found.entries()) {
    const other = wanted[index] ?? "";
    if (line === other) continue;
    if (lead(line).includes("\t") !== lead(other).includes("\t")) reasons.add("tabs and spaces differ");
    else if (lead(line) !== lead(other) && index > 0) reasons.add("the indentation differs");
    if (line.trimEnd() !== line || other.trimEnd() !== other) reasons.add("there are spaces at the end of a line");
  }
  return reasons.size === 0 ? "the spaces differ" : [...reasons].join(", ");
}

/** Returns the lines most similar to the first meaningful wanted line, best first. */
function nearestLines(lines: readonly string[], wanted: readonly string[]): number[] {
  const goal = wanted.find((line) => line.trim().length > 2);
  if (goal === undefined) return [];
  const goalPairs = pairs(goal);
  return lines
    .slice(0, MAX_COMPARED_LINES)
    .map((line, index) => ({ index, score: likeness(goalPairs, pairs(line)) }))
    .filter(({ score }) => score >= SIMILAR)
    .sort((one, other) => other.score - one.score || one.index - other.index)
    .slice(0, 3)
    .map(({ index }) => index);
}

function pairs(line: string): Map<string, number> {
  const text = line.trim().slice(0, MAX_COMPARED_CHARACTERS).toLowerCase();
  const counts = new Map<string, number>();
  for (let at = 0; at + 2 <= text.length; at++) {
    const pair = text.slice(at, at + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return counts;
}

/** Returns the share of letter pairs that both have in common, from 0 to 1. */
function likeness(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  const total = (counts: ReadonlyMap<string, number>): number =>
    [...counts.values()].reduce((sum, count) => sum + count, 0);
  let shared = 0;
  for (const [pair, count] of one) shared += Math.min(count, other.get(pair) ?? 0);
  const all = total(one) + total(other);
  return all === 0 ? 0 : (2 * shared) / all;
}

function numberLines(lines: readonly string[], start: number, count: number): string {
  const shown = lines.slice(start, start + Math.min(count, MAX_SHOWN_LINES));
  const text = shown.map((line, index) => `${start + index + 1}. ${clip(line, MAX_SHOWN_CHARACTERS)}`);
  if (count > shown.length) text.push(`[${count - shown.length} more lines]`);
  return text.join("\n");
}

const oneBased = (indexes: readonly number[]): number[] => indexes.map((index) => index + 1);
