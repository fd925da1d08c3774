/** Plans the answer to "Summarise this folder.". */
import { plural } from "../../../lib/text.ts";
import { speakersFor } from "../project/folders.ts";
import { baseName, folderOf, isCode, isForeign, isProse, isTest, languageOf } from "../project/languages.ts";
import { declarationsIn, leadingRemark, titleOf } from "../project/read-source.ts";
import { cite, heading, inlineText, limitRows, list, remarkRow, writeAnswer } from "../write-answer.ts";
import {
  ask,
  entriesOf,
  glob,
  globHits,
  hindrances,
  linesOf,
  type Scene,
  type UnderstudyStep,
  unfold,
  view,
} from "./plan.ts";

const HEAD = [1, 30] as const;
const MAX_HEADS = 20;

export function planFolder(scene: Scene, folder: string, preface: string | undefined): UnderstudyStep {
  const all = `${folder}/**/*`;
  const look = ask(scene, [glob(all)]) ?? ask(scene, unfold(scene, [glob(all)]));
  if (look !== undefined) return look;
  const found = globHits(scene, all);
  const files = found.paths.filter((path) => !isForeign(path) || isForeign(`${folder}/x`));
  const speakers = speakersFor(folder, files);
  const direct = files.filter((path) => folderOf(path) === folder && (isCode(path) || isProse(path)));
  const heads = [
    ...new Set([
      ...speakers.slice(0, 1),
      ...direct.filter((path) => !isTest(path)),
      ...subfolders(folder, files).flatMap((sub) => speakersFor(sub, files).slice(0, 1)),
    ]),
  ].slice(0, MAX_HEADS);
  const read = ask(
    scene,
    heads.map((path) => view(path, HEAD)),
  );
  if (read !== undefined) return read;
  return {
    kind: "answer",
    text: describeFolder(scene, { folder, files, total: found.total, cut: found.cut, heads, preface }),
  };
}

interface FoundFolder {
  readonly folder: string;
  readonly files: readonly string[];
  readonly total: number;
  readonly cut: boolean;
  readonly heads: readonly string[];
  readonly preface: string | undefined;
}

function describeFolder(scene: Scene, found: FoundFolder): string {
  const { folder, files, heads, preface } = found;
  const notes = hindrances(scene, ["view", "glob"]);
  if (files.length === 0) return writeAnswer([preface, describeNames(folder, entriesOf(scene, folder)), notes]);
  const languages = [...new Set(files.flatMap((path) => languageOf(path)?.name ?? []))];
  const lead = heads[0] === undefined ? [] : remarkRow(heads[0], leadingRemark(heads[0], linesOf(scene, heads[0])));
  const count = `${found.cut ? "at least " : ""}${plural(Math.max(found.total, files.length), "file")}`;
  const direct = files.filter((path) => folderOf(path) === folder);
  const rows = direct.filter((path) => !isTest(path)).map((path) => fileRow(scene, path));
  const folders = subfolders(folder, files).map((sub) => subfolderRow(scene, sub, files));
  return writeAnswer([
    preface,
    [`**\`${folder}/\`** – ${count}; ${list(languages, 5)}`, ...lead],
    heading("Files", limitRows(rows, 24, "more files")),
    testsRow(direct.filter(isTest)),
    heading("Folders inside", limitRows(folders, 16, "more folders")),
    notes,
  ]);
}

function describeNames(folder: string, names: readonly string[]): string {
  if (names.length === 0) return `\`${folder}/\` is empty.`;
  const quoted = names.map((name) => `\`${name}\``);
  return `\`${folder}/\` holds ${list(quoted, 20)}.`;
}

function testsRow(tests: readonly string[]): string[] {
  if (tests.length === 0) return [];
  const names = tests.map((path) => `\`${baseName(path)}\``);
  return [`**Tests:** ${list(names, 6)}`];
}

function fileRow(scene: Scene, path: string): string {
  const lines = linesOf(scene, path);
  const remark = leadingRemark(path, lines) ?? (isProse(path) ? titleOf(lines) : undefined);
  if (remark !== undefined)
    return `- \`${baseName(path)}\` – ${inlineText(remark.text, 130)} ${cite(path, remark.line)}`;
  const declared = declarationsIn(path, lines).filter((one) => one.visible);
  const first = declared[0];
  return first === undefined
    ? `- \`${baseName(path)}\``
    : `- \`${baseName(path)}\` – declares ${list(
        declared.map((one) => `\`${one.name}\``),
        4,
      )} ${cite(path, first.line)}`;
}

function subfolderRow(scene: Scene, sub: string, files: readonly string[]): string {
  const inside = files.filter((path) => path.startsWith(`${sub}/`));
  const speaker = speakersFor(sub, files)[0];
  const remark = speaker === undefined ? undefined : leadingRemark(speaker, linesOf(scene, speaker));
  const said =
    remark === undefined || speaker === undefined
      ? ""
      : ` – ${inlineText(remark.text, 110)} ${cite(speaker, remark.line)}`;
  return `- \`${sub}/\` (${inside.length})${said}`;
}

function subfolders(folder: string, files: readonly string[]): string[] {
  const start = `${folder}/`;
  const names = files.filter((path) => path.startsWith(start)).map((path) => path.slice(start.length).split("/"));
  return [...new Set(names.flatMap((parts) => (parts.length > 1 && parts[0] !== undefined ? [start + parts[0]] : [])))];
}
