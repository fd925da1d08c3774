/** The searches for terms, from the strictest to the loosest. */

import { glob, globHits, grep, grepHits, type PlannedCall, type Scene } from "./plan/plan.ts";
import { definitionSearch, isCode, isForeign, isTest } from "./project/languages.ts";
import { matchersFor, wordSearch } from "./project/match.ts";
import { keyOf, type Ranked, rankHits } from "./project/rank.ts";
import { isPlainName } from "./subject.ts";
import { namePatterns, splitName, stem, type Term } from "./terms.ts";

export interface SearchAttempt {
  readonly terms: readonly Term[];
  readonly definitions: PlannedCall;
  readonly uses: PlannedCall;
  /** Searches for lines with two of the words, which must not be lost if the search for one of them is cut. */
  readonly together: readonly PlannedCall[];
  readonly names: PlannedCall;
  readonly calls: readonly PlannedCall[];
  /** True if the terms differ from the requested ones. */
  readonly loosened: boolean;
}

const NO_PROSE = "!*.{md,mdx,rst,txt,adoc,lock}";
const MAX_NAMED_FILES = 8;

/** Returns the attempts in order. Each is made only if the ones before found nothing. */
export function attemptsFor(terms: readonly Term[]): SearchAttempt[] {
  if (areWords(terms)) return [strictly(terms), searchFor(terms, { prose: true, loosened: false })];
  const words = looser(terms);
  return words.length === 0 ? [strictly(terms)] : [strictly(terms), searchFor(words, { prose: false, loosened: true })];
}

export function strictly(terms: readonly Term[]): SearchAttempt {
  return searchFor(terms, { prose: false, loosened: false });
}

/** If one word names a file, searches for the others in that file's definitions. */
export function withinNamed(scene: Scene, { terms, names, definitions }: SearchAttempt): PlannedCall[] {
  if (!areWords(terms) || terms.length < 2) return [];
  const matchers = matchersFor(terms);
  const matched = (path: string) => matchers.filter((matcher) => matcher.test(path)).length;
  const files = globHits(scene, String(names.arguments.pattern))
    .paths.filter((path) => isCode(path) && !isTest(path) && !isForeign(path) && matched(path) > 0)
    .sort((a, b) => matched(b) - matched(a) || a.length - b.length || (a < b ? -1 : 1))
    .slice(0, MAX_NAMED_FILES);
  if (files.length === 0) return [];
  const { path: _, ...rest } = definitions.arguments;
  return [{ name: "grep", arguments: { ...rest, paths: files } }];
}

export function hitsOf(scene: Scene, attempt: SearchAttempt, inner: readonly PlannedCall[]): Ranked[] {
  const { terms } = attempt;
  const definitions = [attempt.definitions, ...inner].flatMap((call) => grepHits(scene, call).hits);
  const all = [...definitions, ...[attempt.uses, ...attempt.together].flatMap((call) => grepHits(scene, call).hits)];
  const own = all.filter((hit) => !isForeign(hit.path));
  const ranked = rankHits(own.length > 0 ? own : all, terms, new Set(definitions.map(keyOf)));
  // With several words, lines with only one of them are chance hits as long as better ones exist.
  const most = (defines: boolean) => Math.max(0, ...ranked.map((hit) => (hit.defines === defines ? hit.covers : 0)));
  const least = { true: Math.min(2, most(true)), false: Math.min(2, most(false)) };
  return areWords(terms) ? ranked.filter((hit) => hit.covers >= least[`${hit.defines}`]) : ranked;
}

function searchFor(terms: readonly Term[], { prose, loosened }: { prose: boolean; loosened: boolean }): SearchAttempt {
  const patterns = terms.flatMap((term) => (term.kind === "word" ? [wordSearch(term.text).name] : namePatterns(term)));
  const ignoreCase = terms.some((term) => term.kind === "quoted" || isPlainName(term));
  const definitions = grep(definitionSearch(patterns), { ignoreCase, limit: 100 });
  const anywhere = terms.every((term) => term.kind === "name")
    ? `\\b(?:${patterns.join("|")})\\b`
    : terms.flatMap((t) => (t.kind === "word" ? [wordSearch(t.text).anywhere] : namePatterns(t))).join("|");
  // Plain words are everywhere in prose. It is searched only if the code has none of them.
  const files = areWords(terms) && !prose ? { files: NO_PROSE } : {};
  const uses = grep(anywhere, { ignoreCase, limit: 150, ...files });
  const fragments = terms.flatMap((term) => (term.kind === "quoted" ? [] : [fileFragment(term)]));
  const named = [...new Set(fragments)].filter((fragment) => fragment.length > 2);
  const names = glob(named.length === 0 ? "*" : `**/*${named.length === 1 ? named[0] : `{${named.join(",")}}`}*`);
  const together = pairSearch(terms).map((pattern) => grep(pattern, { limit: 60, ...files }));
  return { terms, definitions, uses, together, names, calls: [definitions, uses, ...together, names], loosened };
}

const MAX_PAIRED = 4;

/** Returns one pattern for any two of the words on a line, in any order. */
function pairSearch(terms: readonly Term[]): string[] {
  if (terms.length < 2 || !areWords(terms)) return [];
  const words = terms.slice(0, MAX_PAIRED).map((term) => `(?:${wordSearch(term.text).anywhere})`);
  const pairs = words.flatMap((first) => words.filter((word) => word !== first).map((word) => `${first}.*${word}`));
  return [pairs.join("|")];
}

function areWords(terms: readonly Term[]): boolean {
  return terms.every((term) => term.kind === "word");
}

/** File names join words in many ways, and the first letter may be upper case. */
function fileFragment(term: Term): string {
  const parts = term.kind === "word" ? [stem(term.text)] : splitName(term.text);
  return parts
    .map(
      (part) => `[${part.charAt(0)}${part.charAt(0).toUpperCase()}]${part.slice(1).replace(/[^\p{L}\p{N}_]/gu, "?")}`,
    )
    .join("*");
}

/** Splits each term into words, for when nothing contains it whole. */
function looser(terms: readonly Term[]): Term[] {
  const words = terms.flatMap((term) =>
    term.kind === "quoted" ? (term.text.match(/\p{L}{4,}/gu) ?? []) : splitName(term.text),
  );
  const distinct = [...new Set(words.map((word) => word.toLowerCase()))].filter((word) => word.length > 3);
  return distinct.slice(0, 4).map((text) => ({ text, kind: "word" }));
}
