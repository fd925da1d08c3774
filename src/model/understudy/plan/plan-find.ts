/** Plans the answer to "Where is X?", "who uses X?" and "how does X work?". */
import { nearest, plural } from "../../../lib/text.ts";
import type { Hit, SourceLine } from "../project/evidence.ts";
import { baseName, escapePattern, isForeign, isTest, stemOf } from "../project/languages.ts";
import { matchersFor } from "../project/match.ts";
import type { Ranked } from "../project/rank.ts";
import { attemptsFor, hitsOf, type SearchAttempt, strictly, withinNamed } from "../search.ts";
import { isPlainName } from "../subject.ts";
import { type Term, wholeName } from "../terms.ts";
import { cite, excerpt, heading, hitRow, limitRows, writeAnswer } from "../write-answer.ts";
import {
  ask,
  glob,
  globHits,
  grepHits,
  hindrances,
  linesOf,
  type PlannedCall,
  type Scene,
  type UnderstudyStep,
  unfold,
  view,
} from "./plan.ts";

export interface FindQuestion {
  readonly terms: readonly Term[];
  readonly want: "definition" | "uses" | "any";
  /** The question expects yes or no. */
  readonly whether?: boolean;
  /** Text above the findings: what could not be done. */
  readonly preface?: string;
}

const MAX_EXCERPTS = 3;
const BEFORE = 4;
const AFTER = 14;

export function planFind(scene: Scene, search: FindQuestion): UnderstudyStep {
  if (search.terms.length === 0)
    return {
      kind: "answer",
      text: writeAnswer([
        search.preface,
        "I found no name or word in the prompt to search for. Name a function, a file or a text, for example: where is `main` defined?",
      ]),
    };
  let attempt: SearchAttempt | undefined;
  let ranked: Ranked[] = [];
  for (const next of attemptsFor(search.terms)) {
    const inner = withinNamed(scene, next);
    const step = ask(scene, next.calls) ?? ask(scene, unfold(scene, next.calls)) ?? ask(scene, inner);
    if (step !== undefined) return step;
    const found = withMostWords(hitsOf(scene, next, inner), next.terms);
    const defined = found.some((hit) => hit.defines);
    if (ranked.length > 0 && !defined) break;
    [attempt, ranked] = [next, found];
    // A plain word that is not a name itself may be part of one.
    if (defined || (found.length > 0 && !(search.want !== "uses" && search.terms.every(isPlainName)))) break;
  }
  const shown = isAbsent(search, ranked) ? [] : toShow(ranked, search.want);
  const look = ask(scene, shown.map(viewAround)) ?? (ranked.length === 0 ? ask(scene, [glob("**/*")]) : undefined);
  if (look !== undefined) return look;
  return {
    kind: "answer",
    text: describe(scene, { search, attempt: attempt ?? strictly(search.terms), ranked, shown }),
  };
}

/** Returns the hits to show with context. No two are from the same part of a file. */
function toShow(ranked: readonly Ranked[], want: FindQuestion["want"]): Ranked[] {
  const defining = ranked.filter((hit) => hit.defines);
  const best =
    want === "uses"
      ? [...defining.slice(0, 1), ...ranked.filter((hit) => !hit.defines).slice(0, 1)]
      : defining.length > 0
        ? defining
        : ranked;
  const top = best[0]?.score ?? 0;
  const chosen: Ranked[] = [];
  for (const hit of best) {
    if (chosen.length >= MAX_EXCERPTS) break;
    if (want !== "uses" && hit.score < top - 45) break;
    if (!chosen.some((other) => other.path === hit.path && Math.abs(other.line - hit.line) < AFTER)) chosen.push(hit);
  }
  return chosen;
}

function viewAround(hit: Hit): PlannedCall {
  return view(hit.path, [Math.max(1, hit.line - BEFORE), hit.line + AFTER + 30]);
}

interface Findings {
  readonly search: FindQuestion;
  readonly attempt: SearchAttempt;
  readonly ranked: readonly Ranked[];
  readonly shown: readonly Ranked[];
}

function describe(scene: Scene, found: Findings): string {
  const { search, attempt, ranked, shown } = found;
  const { terms } = attempt;
  const wanted = search.terms.map((term) => `\`${term.text}\``).join(", ");
  const notes = hindrances(scene, ["grep", "view", "glob"]);
  const files = globHits(scene, String(attempt.names.arguments.pattern)).paths.filter(
    (path) => !isForeign(path) && matchesName(path, terms),
  );
  const fileRows = heading(
    "Files with such a name",
    limitRows(
      files.map((path) => `- \`${path}\``),
      6,
      "more files",
    ),
  );
  const no = search.whether ? "No. " : "";
  if (ranked.length === 0) return writeAnswer([search.preface, no + nothing(scene, wanted), fileRows, notes]);
  if (isAbsent(search, ranked))
    return writeAnswer([
      search.preface,
      `${no}I found nothing that has ${wanted} together.`,
      nearestRows(ranked),
      notes,
    ]);

  const defining = ranked.filter((hit) => hit.defines);
  const uses = ranked.filter((hit) => !hit.defines);
  const cut = grepHits(scene, attempt.uses).cut;
  const others = defining.filter((hit) => !shown.includes(hit));
  return writeAnswer([
    search.preface,
    attempt.loosened ? `Nothing holds ${wanted} as it stands; these come nearest.` : undefined,
    verdict(found, { uses, defining, cut }),
    ...shown.map((hit) =>
      excerpt(
        hit.path,
        block(hit, linesOf(scene, hit.path), search.want === "uses" ? 8 : shown.length === 1 ? 28 : AFTER),
      ),
    ),
    heading("Also defined", limitRows(others.map(hitRow), search.want === "definition" ? 8 : 5, "more definitions")),
    usesSection(
      uses.filter((hit) => !shown.includes(hit)),
      { want: search.want, cut, defined: defining.length > 0 },
    ),
    fileRows,
    notes,
  ]);
}

/** True if several words were given and no hit has more than half of them. */
function isAbsent({ terms }: FindQuestion, ranked: readonly Ranked[]): boolean {
  if (terms.length < 2 || terms.some((term) => term.kind !== "word")) return false;
  return ranked.every((hit) => hit.covers * 2 <= terms.length);
}

/** Leaves out definitions with fewer of the words than other lines have, if these have all of them. */
function withMostWords(ranked: readonly Ranked[], terms: readonly Term[]): Ranked[] {
  const isWhole = ({ covers }: Ranked) => covers === terms.length;
  const isMentioned = terms.length > 1 && terms.every(({ kind }) => kind === "word") && ranked.some(isWhole);
  const isDefined = ranked.some((hit) => hit.defines && isWhole(hit));
  return isMentioned && !isDefined ? ranked.filter(isWhole) : [...ranked];
}

const MAX_NEAREST = 4;

function nearestRows(ranked: readonly Ranked[]): string[] {
  const defining = ranked.filter((hit) => hit.defines);
  return heading("Nearest names", (defining.length > 0 ? defining : ranked).slice(0, MAX_NEAREST).map(hitRow));
}

function verdict(
  found: Findings,
  count: { uses: readonly Ranked[]; defining: readonly Ranked[]; cut: boolean },
): string {
  const wanted = found.search.terms.map((term) => `\`${term.text}\``).join(", ");
  const { uses, defining } = count;
  const one = uses.length === 1;
  const files = plural(new Set(uses.map((hit) => hit.path)).size, "file");
  const others = `${count.cut ? "at least " : ""}${plural(uses.length, "other line")} in ${files}`;
  const first = found.shown.find((hit) => hit.defines) ?? defining[0];
  if (first === undefined) {
    const them = found.search.terms.length === 1 ? "it" : found.search.terms.length === 2 ? "both" : "them";
    const mention = `${others.replace("other ", "")} ${one ? "mentions" : "mention"} ${them}`;
    return `I found no definition that matches ${wanted}, but ${mention}. The likeliest first:`;
  }
  const more = defining.length > 1 ? ` (and ${plural(defining.length - 1, "more definition")})` : "";
  const citation = `${cite(first.path, first.line)}${more}`;
  return isExact(first, found.search.terms)
    ? `${wanted}: defined at ${citation}; ${others} ${one ? "mentions" : "mention"} it.`
    : `Nearest to ${wanted} by name: ${citation}; ${others} ${one ? "comes" : "come"} near too.`;
}

function isExact(hit: Hit, terms: readonly Term[]): boolean {
  const [only, ...others] = terms;
  if (only === undefined || (others.length > 0 && only.kind === "word")) return false;
  return wholeName([escapePattern(only.text)], only.kind !== "name" || isPlainName(only)).test(hit.text);
}

/** Spreads the uses over files, so that one busy file does not hide the others. */
function usesSection(
  uses: readonly Ranked[],
  { want, cut, defined }: { want: FindQuestion["want"]; cut: boolean; defined: boolean },
): string[] {
  const byFile = new Map<string, Ranked[]>();
  for (const hit of uses) byFile.set(hit.path, [...(byFile.get(hit.path) ?? []), hit]);
  const limit = want === "uses" ? 18 : want === "definition" ? 5 : 8;
  const rows = [...byFile.values()].flatMap(([first, ...rest]) =>
    first === undefined
      ? []
      : [`${hitRow(first)}${rest.length > 0 ? ` and ${plural(rest.length, "more line")} there` : ""}`],
  );
  const tests = uses.filter((hit) => isTest(hit.path)).length;
  return heading(`${defined ? "Used in" : "Other mentions"}${tests > 0 ? " (tests last)" : ""}`, [
    ...limitRows(rows, limit, "more files"),
    ...(cut ? ["- … the search was cut; there are more"] : []),
  ]);
}

/** Returns the lines from the comment above the hit to the end of its declaration, as far as they were read. */
function block(hit: Hit, lines: readonly SourceLine[], limit: number): SourceLine[] {
  const at = lines.findIndex((line) => line.number === hit.line);
  if (at < 0) return [{ number: hit.line, text: hit.text }];
  let from = at;
  while (from > 0 && at - from < BEFORE && /^\s*(\/\/|\/?\*|#|@|""")/.test(lines[from - 1]?.text ?? "")) from -= 1;
  const indent = indentOf(lines[at]?.text ?? "");
  let to = at;
  while (to + 1 < lines.length && to - at < limit && lines[to + 1]?.number === (lines[to]?.number ?? 0) + 1) {
    const next = lines[to + 1]?.text ?? "";
    if (next.trim() !== "" && indentOf(next) <= indent) {
      if (!/^\s*[)}\]>]/.test(next)) break;
      to += 1;
      if (!/[({[:,]\s*$/.test(next)) break;
      continue;
    }
    if (next.trim() === "" && indentOf(lines[to + 2]?.text ?? "") <= indent) break;
    to += 1;
  }
  return lines.slice(from, to + 1);
}

function indentOf(text: string): number {
  return text.length - text.trimStart().length;
}

function matchesName(path: string, terms: readonly Term[]): boolean {
  const letters = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const matchers = matchersFor(terms);
  return terms.some((term, index) =>
    term.kind === "word"
      ? matchers[index]?.test(baseName(path))
      : term.kind === "name" && letters(baseName(path)).includes(letters(term.text)),
  );
}

function nothing(scene: Scene, wanted: string): string {
  const files = globHits(scene, "**/*").paths.filter((path) => !isForeign(path));
  if (!scene.tools.has("grep")) return `I cannot search for ${wanted} without the grep tool.`;
  const near = files.length === 0 ? undefined : nearest(wanted.replaceAll("`", ""), files.map(stemOf));
  const path = near === undefined ? undefined : files.find((file) => stemOf(file) === near);
  return `I found nothing for ${wanted}: no definition and no mention in any file that is not ignored.${path === undefined ? "" : ` The nearest file name is \`${path}\`.`}`;
}
