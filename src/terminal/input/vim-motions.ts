/** Motions and text objects of vim mode: pure functions over a text and a position in it. */

export interface TextSpan {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly isLinewise?: boolean;
}

/** A motion ends at `to`. An inclusive one takes the character there too; a linewise one takes whole lines. */
export interface Motion {
  readonly to: number;
  readonly isInclusive?: boolean;
  readonly isLinewise?: boolean;
}

export const lineStart = (text: string, at: number): number => text.lastIndexOf("\n", at - 1) + 1;

export function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

type Kind = "blank" | "word" | "other";

function kindAt(text: string, at: number, isBig: boolean): Kind {
  const character = text[at];
  if (character === undefined || /\s/.test(character)) return "blank";
  return isBig || /[\p{L}\p{N}_]/u.test(character) ? "word" : "other";
}

function nextWord(text: string, from: number, isBig: boolean): number {
  let at = from;
  const kind = kindAt(text, at, isBig);
  if (kind !== "blank") while (at < text.length && kindAt(text, at, isBig) === kind) at++;
  while (at < text.length && kindAt(text, at, isBig) === "blank") at++;
  return at;
}

function previousWord(text: string, from: number, isBig: boolean): number {
  let at = from;
  while (at > 0 && kindAt(text, at - 1, isBig) === "blank") at--;
  const kind = kindAt(text, at - 1, isBig);
  while (at > 0 && kindAt(text, at - 1, isBig) === kind) at--;
  return at;
}

function wordEnd(text: string, from: number, isBig: boolean): number {
  let at = from + 1;
  while (at < text.length && kindAt(text, at, isBig) === "blank") at++;
  const kind = kindAt(text, at, isBig);
  while (at + 1 < text.length && kindAt(text, at + 1, isBig) === kind) at++;
  return Math.min(at, Math.max(0, text.length - 1));
}

function vertical(text: string, from: number, lines: number): number | undefined {
  const column = from - lineStart(text, from);
  let start = lineStart(text, from);
  for (let left = Math.abs(lines); left > 0; left--) {
    if (lines < 0 && start === 0) return undefined;
    if (lines > 0 && lineEnd(text, start) === text.length) return undefined;
    start = lines < 0 ? lineStart(text, start - 1) : lineEnd(text, start) + 1;
  }
  return Math.min(start + column, lineEnd(text, start));
}

const repeated = (count: number, from: number, step: (at: number) => number): number => {
  let at = from;
  for (let left = count; left > 0; left--) at = step(at);
  return at;
};

/** Undefined for a key that is not a motion, and for one that leads nowhere. */
export function motionOf(key: string, text: string, at: number, count: number | undefined): Motion | undefined {
  const times = count ?? 1;
  switch (key) {
    case "h":
      return { to: Math.max(lineStart(text, at), at - times) };
    case "l":
    case "space":
      return { to: Math.min(lineEnd(text, at), at + times) };
    case "0":
      return { to: lineStart(text, at) };
    case "^":
      return { to: lineStart(text, at) + (/^[ \t]*/.exec(text.slice(lineStart(text, at)))?.[0].length ?? 0) };
    case "$":
      return { to: Math.max(lineStart(text, at), lineEnd(text, at) - 1), isInclusive: true };
    case "w":
    case "W":
      return { to: repeated(times, at, (from) => nextWord(text, from, key === "W")) };
    case "b":
    case "B":
      return { to: repeated(times, at, (from) => previousWord(text, from, key === "B")) };
    case "e":
    case "E":
      return { to: repeated(times, at, (from) => wordEnd(text, from, key === "E")), isInclusive: true };
    case "j":
    case "k": {
      const to = vertical(text, at, key === "j" ? times : -times);
      return to === undefined ? undefined : { to, isLinewise: true };
    }
    case "G":
      return { to: lineNumber(text, count), isLinewise: true };
    case "gg":
      return { to: lineNumber(text, times), isLinewise: true };
    default:
      return undefined;
  }
}

/** The start of a line by its number; of the last one without a number. */
function lineNumber(text: string, count: number | undefined): number {
  if (count === undefined) return lineStart(text, text.length);
  let at = 0;
  for (let line = 1; line < count; line++) {
    const end = lineEnd(text, at);
    if (end === text.length) break;
    at = end + 1;
  }
  return at;
}

export type Find = { readonly key: "f" | "F" | "t" | "T"; readonly character: string };

/** Looks for a character in the line. */
export function findOf({ key, character }: Find, text: string, at: number, count: number): Motion | undefined {
  const isForward = key === "f" || key === "t";
  const [first, last] = [lineStart(text, at), lineEnd(text, at)];
  let found = at;
  for (let left = count; left > 0; left--) {
    // `t` before the character would find the same one again.
    const skip = key === "t" && text[found + 1] === character && left < count ? 1 : 0;
    found = isForward
      ? text.indexOf(character, found + 1 + skip)
      : found === 0
        ? -1
        : text.lastIndexOf(character, found - 1);
    if (found < first || found >= last) return undefined;
  }
  if (key === "t") return { to: found - 1, isInclusive: true };
  if (key === "T") return { to: found + 1 };
  return { to: found, isInclusive: isForward };
}

const PAIRS: Readonly<Record<string, readonly [string, string]>> = {
  "(": ["(", ")"],
  ")": ["(", ")"],
  b: ["(", ")"],
  "[": ["[", "]"],
  "]": ["[", "]"],
  "{": ["{", "}"],
  "}": ["{", "}"],
  B: ["{", "}"],
  "<": ["<", ">"],
  ">": ["<", ">"],
};

/** The text object under the caret: `i` inside, `a` with what surrounds it. */
export function objectOf(how: "i" | "a", key: string, text: string, at: number): TextSpan | undefined {
  if (key === "w" || key === "W") return wordObject(how, text, at, key === "W");
  if (key === '"' || key === "'" || key === "`") return quoteObject(how, key, text, at);
  const pair = PAIRS[key];
  return pair && pairObject(how, pair, text, at);
}

function wordObject(how: "i" | "a", text: string, at: number, isBig: boolean): TextSpan {
  const kind = kindAt(text, at, isBig);
  const isSame = (index: number): boolean => text[index] !== "\n" && kindAt(text, index, isBig) === kind;
  let [from, to] = [at, at];
  while (from > lineStart(text, at) && isSame(from - 1)) from--;
  while (to < lineEnd(text, at) && isSame(to)) to++;
  if (how === "a") while (to < lineEnd(text, at) && kindAt(text, to, isBig) === "blank") to++;
  return { from, to };
}

function quoteObject(how: "i" | "a", quote: string, text: string, at: number): TextSpan | undefined {
  const starts: number[] = [];
  for (let index = lineStart(text, at); index < lineEnd(text, at); index++)
    if (text[index] === quote) starts.push(index);
  for (let index = 0; index + 1 < starts.length; index += 2) {
    const [open = 0, close = 0] = [starts[index], starts[index + 1]];
    if (close >= at) return how === "i" ? { from: open + 1, to: close } : { from: open, to: close + 1 };
  }
  return undefined;
}

function pairObject(
  how: "i" | "a",
  [open, close]: readonly [string, string],
  text: string,
  at: number,
): TextSpan | undefined {
  let depth = 0;
  let from = at;
  for (; from >= 0; from--) {
    if (text[from] === close && from !== at) depth++;
    else if (text[from] === open && depth-- === 0) break;
  }
  if (from < 0) return undefined;
  depth = 0;
  for (let to = from + 1; to < text.length; to++) {
    if (text[to] === open) depth++;
    else if (text[to] === close && depth-- === 0) return how === "i" ? { from: from + 1, to } : { from, to: to + 1 };
  }
  return undefined;
}
