/** Ranks hits by their interest to a reader. */

import { type Term, wholeName } from "../terms.ts";
import type { Hit } from "./evidence.ts";
import { escapePattern, isForeign, isProse, isTest, languageOf, stemOf } from "./languages.ts";
import { type Matcher, matchersFor, partsOf } from "./match.ts";
import { declarationsOf } from "./read-source.ts";

export interface Ranked extends Hit {
  readonly score: number;
  readonly defines: boolean;
  /** Number of terms in the line or its path. */
  readonly covers: number;
}

/** Returns hits, best first, one per line of a file. */
export function rankHits(hits: readonly Hit[], terms: readonly Term[], defining: ReadonlySet<string>): Ranked[] {
  const whole = matchersFor(terms);
  const exact = terms.map((term) => wholeName([escapePattern(term.text)], false));
  const distinct = new Map(hits.map((hit) => [keyOf(hit), hit]));
  return [...distinct.values()]
    .map((hit) => {
      const stem = stemOf(hit.path);
      const inText = whole.filter((pattern) => pattern.test(hit.text)).length;
      const covers = whole.filter((pattern) => pattern.test(hit.text) || pattern.test(hit.path)).length;
      const named = defining.has(keyOf(hit)) && !isComment(hit) ? namesDefined(hit, whole) : [];
      const defines = named.length > 0;
      const score =
        (defines ? 100 : 0) +
        (named.some((name) => isWhollyNamed(name, whole)) ? 25 : 0) +
        covers * 30 +
        inText * 10 +
        (exact.some((pattern) => pattern.test(hit.text)) ? 5 : 0) +
        (whole.some((pattern) => pattern.test(stem)) ? 15 : 0) +
        (/\b(function|class|def|fn|func|fun)\b/.test(hit.text) ? 12 : 0) +
        (/^\s*(export|pub|public)\b/.test(hit.text) ? 10 : 0) +
        (/^\s*(import|from|use|using|require|#include|\/\/|\/?\*|#)/.test(hit.text) ? -20 : 0) -
        (/^\s+(const|let|var|final|val)\s/.test(hit.text) ? 60 : 0) -
        (isTest(hit.path) ? 60 : 0) -
        (isProse(hit.path) ? 70 : 0) -
        (languageOf(hit.path)?.family === "data" ? 40 : 0) -
        (isForeign(hit.path) ? 90 : 0) -
        hit.path.split("/").length;
      return { ...hit, score, defines, covers };
    })
    .sort((a, b) => b.score - a.score || (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
}

export function keyOf(hit: Hit): string {
  return `${hit.path}:${hit.line}`;
}

/** A nested declaration: the keyword is at the start of the line, and the text after the name is not prose. */
const INNER =
  /^\s*(?:(?:export|default|pub(?:\([^)]*\))?|async|abstract|static|public|private|protected|override|final|unsafe)\s+)*(?:function\*?|class|interface|type|enum|const|let|var|def|fn|func(?:\s*\([^)]*\))?|fun|struct|trait|mod)\s+([\p{L}\p{M}\p{N}_$]+)\s*(?:[<({[:=;]|$|extends\b|implements\b)/u;

/** A method with its body, or a name with an assigned value. */
const METHOD =
  /^\s*(?!(?:return|await|throw|new|if|for|while|else|yield|case)\b)(?:[\p{L}\p{M}\p{N}_<>[\],.?]+\s+){0,4}?([\p{L}\p{M}\p{N}_$]+)\s*(?:\([^;]*\{\s*$|[:=](?!=))/u;

/** Returns the requested names that the hit defines. The tool's pattern is broader. */
function namesDefined(hit: Hit, wanted: readonly Matcher[]): string[] {
  const family = languageOf(hit.path)?.family;
  if (family === undefined || family === "prose") return [];
  const declared = declarationsOf(family, [{ number: hit.line, text: hit.text }])[0]?.name;
  const inner = INNER.exec(hit.text)?.[1];
  const method = METHOD.exec(hit.text)?.[1];
  return [declared, inner, method].filter(
    (name) => name !== undefined && wanted.some((matcher) => matcher.isName(name)),
  ) as string[];
}

/** True if the name consists only of the requested terms. */
function isWhollyNamed(name: string, wanted: readonly Matcher[]): boolean {
  return partsOf(name).every((part) => wanted.some((matcher) => matcher.isName(part)));
}

function isComment(hit: Hit): boolean {
  return /^\s*(\/\/|\/?\*|#(?!define)|--|"""|')/.test(hit.text);
}
