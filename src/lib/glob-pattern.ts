/**
 * Glob patterns. The matching time is bounded by pattern length times path length, so a pattern cannot hang the
 * program.
 */

const MAX_PATTERN_CHARACTERS = 1000;
const MAX_ALTERNATIVES = 256;
const SPECIAL = /[*?[\]{}\\]/;

/** A pattern that exceeds a limit. */
export class GlobPatternError extends Error {
  override readonly name = "GlobPatternError";
}

/** Separates the leading folders that contain no wildcard. `/a/b/*.ts` is `*.ts` below `/a/b`. */
export function splitBase(pattern: string): { base: string; pattern: string } {
  const segments = pattern.split("/");
  const firstSpecial = segments.findIndex((segment) => SPECIAL.test(segment));
  const count = firstSpecial < 0 ? segments.length - 1 : firstSpecial;
  const base = segments.slice(0, count).join("/");
  const rest = segments.slice(count).join("/");
  return { base: base === "" && pattern.startsWith("/") ? "/" : base, pattern: rest === "" ? "**" : rest };
}

/** Returns a test for paths with `/` as separator. A pattern that ends in `/` matches everything below. */
export function globMatcher(pattern: string): (path: string) => boolean {
  if (pattern.length > MAX_PATTERN_CHARACTERS) {
    throw new GlobPatternError(`A glob pattern can have at most ${MAX_PATTERN_CHARACTERS} characters.`);
  }
  const alternatives = expandBraces(pattern).map((text) =>
    text
      .replace(/\/$/, "/**")
      .split("/")
      .filter((segment) => segment !== "" && segment !== ".")
      .map((segment) => (segment === "**" ? ("**" as const) : parseSegment(segment))),
  );
  return (path) => {
    const names = path.split("/").map((name) => [...name]);
    return alternatives.some((segments) => matchesPath(segments, names));
  };
}

type Token = "*" | "?" | { readonly character: string } | { readonly set: readonly Range[]; readonly negated: boolean };
type Range = readonly [from: string, to: string];
type Segment = "**" | readonly Token[];

function matchesPath(segments: readonly Segment[], names: readonly string[][]): boolean {
  return matchesWithStar(segments, names, {
    isStar: (segment) => segment === "**",
    matchesOne: (segment, name) =>
      segment !== "**" &&
      matchesWithStar(segment, name, { isStar: (token) => token === "*", matchesOne: matchesCharacter }),
  });
}

/** Only the last star ever needs to match more, so there is no backtracking beyond it. */
function matchesWithStar<P, V>(
  pattern: readonly P[],
  values: readonly V[],
  { isStar, matchesOne }: { isStar: (part: P) => boolean; matchesOne: (part: P, value: V) => boolean },
): boolean {
  let at = 0;
  let star = -1;
  let takenByStar = 0;
  for (let index = 0; index < values.length; ) {
    const part = pattern[at];
    const value = values[index];
    if (part !== undefined && isStar(part)) {
      star = at++;
      takenByStar = index;
    } else if (part !== undefined && value !== undefined && matchesOne(part, value)) {
      at++;
      index++;
    } else if (star >= 0) {
      at = star + 1;
      index = ++takenByStar;
    } else return false;
  }
  return pattern.slice(at).every(isStar);
}

function matchesCharacter(token: Token, character: string): boolean {
  if (token === "?") return true;
  if (token === "*") return false;
  if ("character" in token) return token.character === character;
  return token.set.some(([from, to]) => from <= character && character <= to) !== token.negated;
}

function parseSegment(segment: string): Token[] {
  const characters = [...segment];
  const tokens: Token[] = [];
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] ?? "";
    const set = character === "[" ? parseSet(characters, index) : undefined;
    if (set !== undefined) {
      tokens.push(set.token);
      index = set.last;
    } else if (character === "*") {
      if (tokens.at(-1) !== "*") tokens.push("*");
    } else if (character === "?") tokens.push("?");
    else if (character === "\\" && index + 1 < characters.length) tokens.push({ character: characters[++index] ?? "" });
    else tokens.push({ character });
  }
  return tokens;
}

/** Parses `[a-z]`, `[!a]` or `[^a]`. Returns undefined if the bracket is not closed: it is then literal. */
function parseSet(characters: readonly string[], open: number): { token: Token; last: number } | undefined {
  const negated = ["!", "^"].includes(characters[open + 1] ?? "");
  const first = open + (negated ? 2 : 1);
  const last = characters.indexOf("]", first + 1);
  if (last < 0) return undefined;
  const set: Range[] = [];
  for (let index = first; index < last; index++) {
    const from = characters[index] ?? "";
    const isRange = characters[index + 1] === "-" && index + 2 < last;
    set.push([from, isRange ? (characters[index + 2] ?? from) : from]);
    if (isRange) index += 2;
  }
  return { token: { set, negated }, last };
}

function expandBraces(pattern: string): string[] {
  const braces = firstBraces(pattern);
  if (braces === undefined) return [pattern];
  const { open, close, options } = braces;
  const heads = options.flatMap((option) => expandBraces(option));
  const tails = expandBraces(pattern.slice(close + 1));
  if (heads.length * tails.length > MAX_ALTERNATIVES) {
    throw new GlobPatternError(`The braces in the glob pattern expand to more than ${MAX_ALTERNATIVES} alternatives.`);
  }
  return heads.flatMap((head) => tails.map((tail) => pattern.slice(0, open) + head + tail));
}

/** Returns the first complete pair of braces and its alternatives. Unclosed braces are literal. */
function firstBraces(pattern: string): { open: number; close: number; options: string[] } | undefined {
  let depth = 0;
  let open = -1;
  let commas: number[] = [];
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern[index];
    if (character === "\\") index++;
    else if (character === "{") {
      if (depth++ === 0) {
        open = index;
        commas = [];
      }
    } else if (character === "," && depth === 1) commas.push(index);
    else if (character === "}" && depth > 0 && --depth === 0) {
      const edges = [open, ...commas, index];
      const options = edges.slice(1).map((edge, part) => pattern.slice((edges[part] ?? open) + 1, edge));
      return { open, close: index, options };
    }
  }
  return undefined;
}
