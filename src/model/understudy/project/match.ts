/** Matches a term of a question against code: names as a whole, words at the start of a part of a name. */

import { isPlainName } from "../subject.ts";
import { namePatterns, splitName, stem, type Term, wholeName } from "../terms.ts";
import { escapePattern } from "./languages.ts";

export interface Matcher {
  /** True if the term occurs in the text. */
  test(text: string): boolean;
  /** True if a defined name is the requested one: the whole name, or one part of it for a word. */
  isName(name: string): boolean;
}

const SHORT_STEM = 3;
const INFLECTION = /^(?:e|s|es|ed|er|ers|or|ors|ing|ings|y|ies|ied|ion|ions)?$/;

/**
 * True if the part of a name starts with the word's stem: `rate` matches `rateLimit`, `RATE_LIMIT` and `rates`, not
 * `generate`. Short stems match inflected forms only. Scripts without such parts match anywhere.
 */
export function isWordPart(word: string, part: string): boolean {
  const root = stem(word);
  if (!isLatin(root)) return part.includes(root);
  if (!part.startsWith(root)) return false;
  const rest = part.slice(root.length);
  return root.length > SHORT_STEM || INFLECTION.test(rest.startsWith(root.slice(-1)) ? rest.slice(1) : rest);
}

export function matchersFor(terms: readonly Term[]): Matcher[] {
  return terms.map((term, index) =>
    term.kind === "word" ? wordMatcher(term, terms[index - 1], terms[index + 1]) : nameMatcher(term),
  );
}

/** Returns the parts of every name in a text, in lower case. */
export function partsOf(text: string): string[] {
  return (text.match(/[\p{L}\p{M}\p{N}_$]+/gu) ?? []).flatMap(splitName);
}

/** Two neighbouring words may also be written as one: `ratelimit`. */
function wordMatcher(term: Term, before: Term | undefined, after: Term | undefined): Matcher {
  const joined = (first: Term | undefined, second: Term | undefined, part: string) =>
    first?.kind === "word" &&
    second?.kind === "word" &&
    part.startsWith(first.text) &&
    isWordPart(second.text, part.slice(first.text.length));
  const holds = (text: string) =>
    partsOf(text).some(
      (part) => isWordPart(term.text, part) || joined(before, term, part) || joined(term, after, part),
    );
  return { test: holds, isName: holds };
}

function nameMatcher(term: Term): Matcher {
  const pattern = wholeName(namePatterns(term), term.kind !== "name" || isPlainName(term));
  return { test: (text) => pattern.test(text), isName: (name) => pattern.exec(name)?.[0] === name };
}

/**
 * Returns search patterns for the names that a word may be part of. Case counts inside a name, because it marks where a
 * part starts.
 */
export function wordSearch(word: string): { readonly name: string; readonly anywhere: string } {
  const root = stem(word);
  const lower = escapePattern(root);
  if (!isLatin(root)) return { name: `\\w*(?i:${lower})\\w*`, anywhere: `(?i:${lower})` };
  const capital = escapePattern(root.charAt(0).toUpperCase() + root.slice(1));
  const upper = escapePattern(root.toUpperCase());
  return {
    name: `(?:(?:\\w*_)?(?i:${lower})|\\w*${capital}|\\w*[a-z0-9]${upper})\\w*`,
    anywhere: `(?:\\b|_)(?i:${lower})|${capital}|[a-z0-9]${upper}`,
  };
}

function isLatin(text: string): boolean {
  return /^[\p{Script=Latin}\p{N}_-]+$/u.test(text);
}
