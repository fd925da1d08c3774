/** Bounded text: the beginning and the end of what a tool returned. */
import { firstCharacters } from "../lib/text.ts";
import type { OutputText } from "./blocks.ts";
import { ownCopy } from "./own-text.ts";

const HEAD_LINES = 20;
const TAIL_LINES = 20;
const HEAD_CHARACTERS = 4_000;
const TAIL_CHARACTERS = 4_000;
const DIFF_LINES = 400;
const DIFF_CHARACTERS = 32_000;

export const NO_OUTPUT: OutputText = Object.freeze({ head: "", tail: "", hiddenLines: 0, hiddenCharacters: 0 });

interface Room {
  readonly headLines: number;
  readonly headCharacters: number;
  readonly tailLines: number;
  readonly tailCharacters: number;
}

const OUTPUT: Room = {
  headLines: HEAD_LINES,
  headCharacters: HEAD_CHARACTERS,
  tailLines: TAIL_LINES,
  tailCharacters: TAIL_CHARACTERS,
};
const DIFF: Room = { headLines: DIFF_LINES, headCharacters: DIFF_CHARACTERS, tailLines: 0, tailCharacters: 0 };

export const outputText = (text: string): OutputText => cutOutput(text, OUTPUT);
export const diffText = (text: string): OutputText => cutOutput(text, DIFF);

/** Output that arrives in pieces: the end of it, bounded. Once the call has ended, its result replaces this. */
export function appendOutput(output: OutputText, more: string): OutputText {
  const all = output.tail + more;
  const start = Math.max(startOfLast(all, TAIL_LINES), all.length - TAIL_CHARACTERS);
  const tail = withoutHalf(all.slice(start));
  const gone = all.slice(0, all.length - tail.length);
  return Object.freeze({
    head: "",
    tail: ownCopy(tail),
    hiddenLines: output.hiddenLines + lineFeeds(gone),
    hiddenCharacters: output.hiddenCharacters + gone.length,
  });
}

/** The last line that is not empty. */
export function lastLineOf(text: string): string {
  const trimmed = text.slice(-2_000).trimEnd();
  return ownCopy(trimmed.slice(trimmed.lastIndexOf("\n") + 1).trim());
}

function cutOutput(text: string, room: Room): OutputText {
  const whole = text.endsWith("\n") ? text.slice(0, -1) : text;
  const headEnd = Math.min(endOfFirst(whole, room.headLines), room.headCharacters);
  if (headEnd >= whole.length) return Object.freeze({ ...NO_OUTPUT, head: whole });
  const head = firstCharacters(whole, headEnd);
  const tailStart = Math.max(startOfLast(whole, room.tailLines), whole.length - room.tailCharacters, headEnd);
  const tail = withoutHalf(whole.slice(tailStart));
  const hidden = whole.slice(head.length, whole.length - tail.length);
  if (hidden === "" || hidden === "\n") return Object.freeze({ ...NO_OUTPUT, head: whole });
  const counts = { hiddenLines: lineFeeds(hidden), hiddenCharacters: hidden.length };
  return Object.freeze({ head: ownCopy(head), tail: ownCopy(tail), ...counts });
}

/** Index of the line feed behind the first `count` lines. */
function endOfFirst(text: string, count: number): number {
  let end = -1;
  for (let line = 0; line < count; line++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0) return text.length;
  }
  return end;
}

/** Index of the first character of the last `count` lines. */
function startOfLast(text: string, count: number): number {
  if (count === 0) return text.length;
  let start = text.length;
  for (let line = 0; line < count; line++) {
    start = text.lastIndexOf("\n", start - 1);
    if (start <= 0) return Math.max(0, start === 0 ? 1 : 0);
  }
  return start + 1;
}

function lineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

/** A surrogate pair that was cut in two is dropped. */
const withoutHalf = (text: string): string => (/^[\udc00-\udfff]/.test(text) ? text.slice(1) : text);
