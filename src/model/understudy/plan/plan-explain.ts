/** Plans the answer to "Explain this file" and "summarise that folder". */
import { plural } from "../../../lib/text.ts";
import { type Hit, mergeLines, type SourceLine } from "../project/evidence.ts";
import {
  baseName,
  escapePattern,
  folderOf,
  isCode,
  isForeign,
  isProse,
  isTest,
  languageOf,
  stemOf,
} from "../project/languages.ts";
import { type Declaration, declarationsIn, importsIn, leadingRemark } from "../project/read-source.ts";
import type { Term } from "../terms.ts";
import {
  cite,
  excerpt,
  heading,
  hitRow,
  inlineCode,
  limitRows,
  list,
  remarkRow,
  writeAnswer,
} from "../write-answer.ts";
import {
  answerTo,
  ask,
  glob,
  globHits,
  grep,
  grepHits,
  hindrances,
  linesOf,
  type PlannedCall,
  type Scene,
  type UnderstudyStep,
  unfold,
  view,
  viewed,
} from "./plan.ts";
import { planFind } from "./plan-find.ts";
import { planFolder } from "./plan-folder.ts";
import { planOverview } from "./plan-overview.ts";

export interface ExplainQuestion {
  readonly path: string;
  readonly line?: number;
  readonly terms: readonly Term[];
  readonly preface?: string;
}

const FIRST = [1, 200] as const;
/** Files of at most this many lines are shown instead of described. */
const SMALL = 20;
/** The further ranges that are read of a long file. */
const REST = [
  [201, 400],
  [401, 600],
  [601, 800],
] as const;

export function planExplain(scene: Scene, question: ExplainQuestion): UnderstudyStep {
  const asked = question.path.replace(/\/+$/, "") || "/";
  if (/^(\.|\.\/)$/.test(asked)) return planOverview(scene);
  const first = ask(scene, [view(asked, FIRST)]);
  if (first !== undefined) return first;
  const seen = viewed(scene, asked, FIRST);
  if (seen.kind === "folder") return planFolder(scene, asked.replace(/^\.\//, ""), question.preface);
  if (seen.kind === "file") return planFile(scene, asked, question);

  const search = candidatesFor(asked);
  const look = ask(scene, [search]) ?? ask(scene, unfold(scene, [search]));
  if (look !== undefined) return look;
  const match = bestMatch(asked, globHits(scene, String(search.arguments.pattern)).paths);
  if (match === undefined) {
    const missing = `There is no file or folder \`${question.path}\` that I can see here; this is what I found by name instead.`;
    const preface = [question.preface, missing].filter((text) => text !== undefined).join("\n\n");
    const terms = question.terms.length > 0 ? question.terms : [{ text: stemOf(asked), kind: "name" as const }];
    return planFind(scene, { terms, want: "any", preface });
  }
  if (match.kind === "folder") return planFolder(scene, match.path, question.preface);
  const read = ask(scene, [view(match.path, FIRST)]);
  return read ?? planFile(scene, match.path, question);
}

/** Searches for files with this name or stem, or below a folder of this name. */
function candidatesFor(asked: string): PlannedCall {
  const name = baseName(asked).replace(/[[\]{}*?]/g, "?");
  return glob(`**/{${name},${name}.*,${name}/*}`);
}

function bestMatch(asked: string, paths: readonly string[]): { kind: "file" | "folder"; path: string } | undefined {
  const name = baseName(asked).toLowerCase();
  const own = paths.filter((path) => !isForeign(path));
  const files = own.filter((path) => baseName(path).toLowerCase() === name || stemOf(path).toLowerCase() === name);
  const folders = [...new Set(own.map(folderOf).filter((path) => baseName(path).toLowerCase() === name))];
  const closest = (list: readonly string[]) =>
    [...list].sort(
      (a, b) =>
        Number(isTest(a)) - Number(isTest(b)) ||
        Number(b.endsWith(asked)) - Number(a.endsWith(asked)) ||
        a.length - b.length ||
        (a < b ? -1 : 1),
    )[0];
  const folder = closest(folders);
  const file = closest(files);
  if (folder !== undefined && (file === undefined || !name.includes("."))) return { kind: "folder", path: folder };
  return file === undefined ? undefined : { kind: "file", path: file };
}

function planFile(scene: Scene, path: string, question: ExplainQuestion): UnderstudyStep {
  const start = viewed(scene, path, FIRST);
  const long = start.kind === "file" && start.lines.length >= FIRST[1];
  const size = sizeOf(path);
  const users = usersOf(path);
  const near = question.line === undefined ? [] : [view(path, [Math.max(1, question.line - 12), question.line + 20])];
  const step =
    ask(scene, [
      ...(long ? [size, outlineOf(path), ...REST.map((range) => view(path, range))] : []),
      ...users,
      ...near,
    ]) ?? ask(scene, unfold(scene, users));
  return step ?? { kind: "answer", text: describeFile(scene, path, question) };
}

/** Searches for lines that may be declarations, so that a file too long to read is still listed completely. */
function outlineOf(path: string): PlannedCall {
  const words =
    "pub|export|public|private|protected|static|async|abstract|function|class|interface|type|enum|const|def|fn|func|fun|struct|trait|impl|mod|module|namespace|module\\.exports";
  return grep(isProse(path) ? "^#{1,3} " : `^\\s{0,4}(?:${words})\\b`, { path, limit: 250 });
}

function sizeOf(path: string): PlannedCall {
  return { name: "grep", arguments: { pattern: "^", path, output_mode: "count" } };
}

/** Searches for lines that import the file, in the syntax of its language. */
function usersOf(path: string): PlannedCall[] {
  if (!isCode(path)) return [grep(`\\b${escapePattern(baseName(path))}\\b`, { limit: 40 })];
  const stem = stemOf(path);
  const bare = /^(index|mod|__init__|lib|main)$/.test(stem) ? baseName(folderOf(path)) : stem;
  if (bare === "") return [];
  const name = escapePattern(bare);
  if (languageOf(path)?.family === "script")
    return [
      grep(`(?:from|import|require\\()\\s*["'][^"']*\\b${name}(?:/index)?(?:\\.[cm]?[jt]sx?)?["']`, { limit: 60 }),
    ];
  return [
    grep(
      `^\\s*(?:pub\\s+)?(?:from|import|use|using|mod|require|require_relative|#include|alias)\\b.*\\b${name}\\b|^\\s+(?:\\w+\\s+)?"[^"]*/${name}"$`,
      { limit: 60 },
    ),
  ];
}

function describeFile(scene: Scene, path: string, question: ExplainQuestion): string {
  const read = linesOf(scene, path);
  // The text after the last line break is not a line.
  const lines = read.length > 1 && read.at(-1)?.text === "" ? read.slice(0, -1) : read;
  const last = lines.at(-1)?.number ?? 0;
  const count = (answerTo(scene, sizeOf(path))?.content ?? "").slice(-100);
  const counted = Number(/(\d+)\s*$/.exec(count)?.[1] ?? Number.NaN);
  const size = Math.max(Number.isNaN(counted) ? 0 : counted, last);
  const language = languageOf(path);
  const outlined = grepHits(scene, outlineOf(path)).hits.map((hit) => ({ number: hit.line, text: hit.text }));
  const notes = hindrances(scene, ["view", "grep"]);
  if (lines.length === 0) return writeAnswer([question.preface, `I could not read \`${path}\`.`, notes]);
  const title = `**\`${path}\`** – ${plural(size, "line")}${language === undefined ? "" : `, ${language.name}`}${size > last ? ` (I read the first ${last} and searched the rest for declarations)` : ""}`;
  const users = usersOf(path)
    .flatMap((call) => grepHits(scene, call).hits)
    .filter((hit) => hit.path !== path && !isForeign(hit.path));
  return writeAnswer([
    question.preface,
    [title, ...remarkRow(path, leadingRemark(path, lines))],
    question.line === undefined
      ? []
      : excerpt(
          path,
          lines.filter((line) => Math.abs(line.number - (question.line ?? 0)) <= 8),
        ),
    size <= SMALL && question.line === undefined && (!isCode(path) || declarationsIn(path, lines).length === 0)
      ? excerpt(path, lines)
      : contents(path, mergeLines([outlined, lines])),
    importSection(path, lines),
    userSection(path, users),
    notes,
  ]);
}

function contents(path: string, lines: readonly SourceLine[]): string[] {
  const declared = declarationsIn(path, lines);
  if (isProse(path))
    return heading(
      "Sections",
      limitRows(
        declared.map((one) => `${"  ".repeat(Math.max(0, one.kind.length - 1))}- ${one.name} ${cite(path, one.line)}`),
        30,
        "more sections",
      ),
    );
  if (declared.length === 0) return keysOf(path, lines);
  const visible = declared.filter((one) => one.visible);
  const shown = visible.length > 0 && declared.length > 30 ? visible : declared;
  const hidden = declared.length - shown.length;
  const title = `Declares (${declared.length}${visible.length === declared.length || visible.length === 0 ? "" : `, ${visible.length} visible outside`})`;
  return heading(title, [
    ...limitRows(
      shown.map((one) => declarationRow(path, one)),
      34,
    ),
    ...(hidden > 0 ? [`- … and ${hidden} internal ones`] : []),
  ]);
}

function declarationRow(path: string, one: Declaration): string {
  return `- ${cite(path, one.line)}  ${inlineCode(one.text.replace(/\s*[{(]\s*$/, ""))}`;
}

/** Returns the top-level keys of JSON, YAML and TOML. */
function keysOf(path: string, lines: readonly SourceLine[]): string[] {
  if (languageOf(path)?.family !== "data") return heading("Begins with", excerpt(path, lines.slice(0, 12)));
  const indents = lines.flatMap((line) => /^(\s+)"/.exec(line.text)?.[1]?.length ?? []);
  const outer = indents.reduce((least, indent) => Math.min(least, indent), indents[0] ?? 0);
  const rows = lines.flatMap((line) => {
    const json = /^(\s*)"([^"]+)"\s*:/.exec(line.text);
    const key =
      json !== null && (json[1]?.length ?? 0) <= outer
        ? json[2]
        : (/^([\w.-]+)\s*[:=]/.exec(line.text)?.[1] ?? /^\[+([^\]]+)\]/.exec(line.text)?.[1]);
    return key === undefined ? [] : [`- ${cite(path, line.number)}  ${inlineCode(line.text.trim())}`];
  });
  return rows.length === 0
    ? heading("Begins with", excerpt(path, lines.slice(0, 12)))
    : heading("Keys", limitRows(rows, 24));
}

function importSection(path: string, lines: readonly SourceLine[]): string[] {
  const imports = importsIn(path, lines);
  const own = imports.filter((one) => /^[./]|^crate|^super|^self/.test(one.target));
  const other = imports.filter((one) => !own.includes(one));
  const row = (title: string, items: typeof imports) =>
    items.length === 0
      ? []
      : [
          `- ${title}: ${list([...new Set(items.map((one) => `\`${one.target}\``))], 14)} (${cite(path, items[0]?.line ?? 1)}${items.length > 1 ? " on" : ""})`,
        ];
  return heading("Depends on", [...row("this project", own), ...row(own.length > 0 ? "elsewhere" : "modules", other)]);
}

function userSection(path: string, users: readonly Hit[]): string[] {
  const firsts = [...new Map([...users].reverse().map((hit) => [hit.path, hit])).values()].reverse();
  const sorted = firsts.sort((a, b) => Number(isTest(a.path)) - Number(isTest(b.path)) || (a.path < b.path ? -1 : 1));
  if (sorted.length === 0) return isCode(path) ? ["No other file imports it, as far as a text search can tell."] : [];
  return heading(
    `${isCode(path) ? "Imported" : "Mentioned"} by ${plural(sorted.length, "file")}`,
    limitRows(sorted.map(hitRow), 10, "more files"),
  );
}
