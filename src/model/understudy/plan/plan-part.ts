/**
 * Plans the report to "Explore this folder and report", the prompt of an agent that explores a part of a repository.
 */
import { plural } from "../../../lib/text.ts";
import type { Hit } from "../project/evidence.ts";
import { speakersFor } from "../project/folders.ts";
import { baseName, folderOf, isCode, isForeign, isProse, isTest, languageOf } from "../project/languages.ts";
import { declarationsIn } from "../project/read-source.ts";
import { importedPath } from "../project/uses.ts";
import { remarkIn } from "../remarks.ts";
import { type ReportRow, writeReport } from "../report.ts";
import { list } from "../write-answer.ts";
import {
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
} from "./plan.ts";

const HEAD = [1, 40] as const;
const MAX_HEADS = 10;
const MAX_ROWS = 8;
const MAX_USES = 8;
const MAX_SUBFOLDERS = 4;
const MAX_INNER_IMPORTS = 200;
const MAX_OUTER_IMPORTS = 120;
/** Longer lines would be cut before the name. */
const MAX_USE_CHARACTERS = 110;
/** Patterns for imports from the same folder or below, and for imports that may be from elsewhere in the project. */
const INNER_IMPORTS = "(from |require\\(|import )[\"']\\./";
const OUTER_IMPORTS = '(from |require\\(|import )["\']\\.\\./|^from [\\w.]+ import|^(import |\\t)"\\S+/\\S+"$';

export function planPart(scene: Scene, folder: string): UnderstudyStep {
  const all = glob(`${folder}/**/*`);
  const searches = importSearches(folder);
  const look = ask(scene, [all, ...searches]) ?? ask(scene, unfold(scene, [all, ...searches]));
  if (look !== undefined) return look;
  const found = globHits(scene, `${folder}/**/*`);
  const files = found.paths.filter((path) => !isForeign(path));
  const hits = searches.flatMap((search) => grepHits(scene, search).hits);
  const heads = mainFiles(folder, files, hits);
  const read = ask(scene, heads.map(head));
  if (read !== undefined) return read;
  const rows = heads.flatMap((path) => rowFor(scene, path)).slice(0, MAX_ROWS);
  const languages = [...new Set(files.flatMap((path) => languageOf(path)?.name ?? []))];
  const count = `${found.cut ? "at least " : ""}${plural(Math.max(found.total, files.length), "file")}`;
  const lead = files.length === 0 ? "I saw no files there." : `${count}; ${list(languages, 5)}`;
  const notes = hindrances(scene, ["view", "glob", "grep"]);
  return {
    kind: "answer",
    text: writeReport({ lead: `**\`${folder}/\`** – ${lead}`, rows: [...rows, ...usesOf(folder, hits)], notes }),
  };
}

function head(path: string): PlannedCall {
  return baseName(path) === "package.json" ? view(path) : view(path, HEAD);
}

function importSearches(folder: string): PlannedCall[] {
  const where = isTest(`${folder}/x`) ? { path: folder } : { path: folder, files: "!*.{test,spec}.*" };
  return [
    grep(INNER_IMPORTS, { ...where, limit: MAX_INNER_IMPORTS }),
    grep(OUTER_IMPORTS, { ...where, limit: MAX_OUTER_IMPORTS }),
  ];
}

/** Returns the files that describe the folder and its subfolders, then the ones that its other files import most. */
function mainFiles(folder: string, files: readonly string[], hits: readonly Hit[]): string[] {
  const popular = new Map<string, number>();
  for (const hit of hits) {
    const target = importedPath(hit.path, hit.text);
    if (target !== undefined) popular.set(withoutEnding(target), (popular.get(withoutEnding(target)) ?? 0) + 1);
  }
  const score = (path: string) => popular.get(withoutEnding(path)) ?? 0;
  const readable = files.filter((path) => (isCode(path) || isProse(path)) && !isTest(path));
  const largest = subfoldersOf(folder, files).slice(0, MAX_SUBFOLDERS);
  const others = readable.sort((a, b) => score(b) - score(a) || depthOf(a) - depthOf(b) || (a < b ? -1 : 1));
  return [
    ...new Set([
      ...speakersFor(folder, files).slice(0, 1),
      ...others.filter((path) => score(path) > 1).slice(0, 3),
      ...largest.flatMap((sub) => speakersFor(sub, files).slice(0, 1)),
      ...speakersFor(folder, files),
      ...others,
      ...files.filter((path) => isCode(path)),
    ]),
  ].slice(0, MAX_HEADS);
}

function rowFor(scene: Scene, path: string): ReportRow[] {
  const remark = remarkIn(scene, path);
  if (remark !== undefined) return [{ kind: "remark", path, line: remark.line, text: remark.text }];
  const declared = declarationsIn(path, linesOf(scene, path)).filter((one) => one.visible);
  const first = declared[0];
  if (first === undefined) return [];
  const names = list(
    declared.map((one) => `\`${one.name}\``),
    4,
  );
  return [{ kind: "names", path, line: first.line, text: `declares ${names}` }];
}

/** Returns one import per folder outside, most used first. */
function usesOf(folder: string, hits: readonly Hit[]): ReportRow[] {
  const byTarget = new Map<string, Hit[]>();
  for (const hit of hits) {
    const target = importedPath(hit.path, hit.text) ?? outside(hit);
    if (target === undefined || `${target}/`.startsWith(`${folder}/`)) continue;
    if (hit.text.trim().length > MAX_USE_CHARACTERS) continue;
    byTarget.set(folderOf(target), [...(byTarget.get(folderOf(target)) ?? []), hit]);
  }
  return [...byTarget]
    .sort(([a, first], [b, second]) => second.length - first.length || (a < b ? -1 : 1))
    .slice(0, MAX_USES)
    .flatMap(([, [hit]]) => (hit === undefined ? [] : [{ ...hit, kind: "quote" as const, text: hit.text.trim() }]));
}

/**
 * Returns a Go import path. Only the reader of the report, who sees the whole project, can tell if it is the project's
 * own.
 */
function outside(hit: Hit): string | undefined {
  return languageOf(hit.path)?.family === "go" ? /"([^"]+)"/.exec(hit.text)?.[1] : undefined;
}

/** Returns the subfolders, largest first. */
function subfoldersOf(folder: string, files: readonly string[]): string[] {
  const sizes = new Map<string, number>();
  for (const path of files) {
    const sub = nextFolder(folder, path);
    if (sub !== folder) sizes.set(sub, (sizes.get(sub) ?? 0) + 1);
  }
  return [...sizes].sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1)).map(([sub]) => sub);
}

function nextFolder(folder: string, path: string): string {
  const rest = path.slice(folder.length + 1);
  const slash = rest.indexOf("/");
  return slash < 0 ? folder : `${folder}/${rest.slice(0, slash)}`;
}

function withoutEnding(path: string): string {
  return path.replace(/\.\w{1,4}$/, "");
}

function depthOf(path: string): number {
  return path.split("/").length;
}
