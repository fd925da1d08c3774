/** Facts about a repository, from its files alone. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { runGit } from "../../lib/node/git.ts";
import { readStart } from "../../lib/node/small-file.ts";
import { type Folder, importantFolders, speakersOf, speaksForFolder } from "../../model/understudy/project/folders.ts";
import { isCode, isForeign, isTest, languageOf } from "../../model/understudy/project/languages.ts";
import { isManifest, type Manifest, manifestRank, readManifest } from "../../model/understudy/project/manifests.ts";
import { firstParagraph, leadingRemark, titleOf } from "../../model/understudy/project/read-source.ts";
import { packageManagerAmong } from "../../model/understudy/project/script-runner.ts";

export interface RepositorySurvey {
  readonly name: string;
  readonly description?: string;
  /** Languages of the code, most files first. */
  readonly languages: readonly { readonly name: string; readonly files: number }[];
  readonly manifests: readonly Manifest[];
  readonly packageManager: string;
  readonly folders: readonly (Folder & { readonly about?: string })[];
  /** Paths of the files that belong to the project. */
  readonly files: readonly string[];
  readonly tests: number;
  /** True if npm has a lock file, so that `npm ci` works. */
  readonly isLocked: boolean;
  /** Names of packages that package.json depends on. */
  readonly packages: ReadonlySet<string>;
  /** True if there were more files than were looked at. */
  readonly isCut: boolean;
}

const MAX_FILES = 20_000;
const MAX_FOLDERS = 40;
const MAX_MANIFESTS = 4;
const MAX_READ_BYTES = 256 * 1024;

/** `root` is a real path. */
export async function survey(root: string): Promise<RepositorySurvey> {
  const all = await filesOf(root);
  const files = all.slice(0, MAX_FILES).filter((path) => !isForeign(path));
  const manifests = manifestsOf(root, files);
  const about = (label: string): string | undefined =>
    manifests.flatMap((manifest) => manifest.about).find((fact) => fact.label === label)?.value;
  const description = about("description") ?? introduction(root, files);
  return {
    name: about("name") ?? root.split("/").at(-1) ?? "project",
    ...defined({ description }),
    languages: languagesOf(files),
    manifests,
    packageManager: packageManagerAmong(all, manifests),
    folders: importantFolders(files, MAX_FOLDERS).map((folder) => withAbout(root, folder, files)),
    files,
    tests: files.filter((path) => isCode(path) && isTest(path)).length,
    isLocked: all.includes("package-lock.json"),
    packages: packagesOf(root),
    isCut: all.length > MAX_FILES,
  };
}

/** Lists what git knows and does not ignore; without git, everything but hidden and installed files. */
async function filesOf(root: string): Promise<string[]> {
  const reply = await runGit(["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root });
  if (reply.code === 0) return reply.stdout.split("\n").filter(Boolean).sort();
  return walked(root).sort();
}

const LEFT_OUT = /^(\..*|node_modules|target|dist|build|out|vendor|venv|__pycache__|coverage)$/;

function walked(root: string): string[] {
  const found: string[] = [];
  const pending = [""];
  for (let folder = pending.pop(); folder !== undefined && found.length <= MAX_FILES; folder = pending.pop()) {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && !LEFT_OUT.test(entry.name)) pending.push(path);
      if (entry.isFile()) found.push(path);
    }
  }
  return found;
}

/** Manifests of the root, and of one folder below it if the root has none. */
function manifestsOf(root: string, files: readonly string[]): Manifest[] {
  const all = files.filter(isManifest);
  const atRoot = all.filter((path) => !path.includes("/"));
  const chosen = atRoot.length > 0 ? atRoot : all.filter((path) => path.split("/").length === 2);
  return [...chosen]
    .sort((one, other) => manifestRank(one) - manifestRank(other))
    .slice(0, MAX_MANIFESTS)
    .flatMap((path) => readManifest(path, linesOf(root, path)) ?? []);
}

function linesOf(root: string, path: string): { number: number; text: string }[] {
  return textOf(root, path)
    .split("\n")
    .map((text, index) => ({ number: index + 1, text: text.replace(/\r$/, "") }));
}

/**
 * Returns "" for a file that is too large or not regular, and for a link: it could lead to a file with secrets, also
 * inside of the repository (`.env`, `.git/config`).
 */
function textOf(root: string, path: string): string {
  const file = join(root, path);
  const start = readStart(file, { maxBytes: MAX_READ_BYTES });
  const isItself = start.kind === "read" && start.size <= MAX_READ_BYTES && start.realPath === file;
  return isItself ? start.bytes.toString("utf8") : "";
}

function introduction(root: string, files: readonly string[]): string | undefined {
  const readme = files.find((path) => /^readme(\.\w+)?$/i.test(path));
  if (readme === undefined) return undefined;
  const lines = linesOf(root, readme);
  return (firstParagraph(lines) ?? titleOf(lines))?.text;
}

function languagesOf(files: readonly string[]): { name: string; files: number }[] {
  const counts = new Map<string, number>();
  for (const path of files.filter(isCode)) {
    const name = languageOf(path)?.name;
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => ({ name, files: count })).sort((one, other) => other.files - one.files);
}

function withAbout(root: string, folder: Folder, files: readonly string[]): Folder & { about?: string } {
  for (const path of speakersOf(folder, files).filter((file) => speaksForFolder(folder.path, file))) {
    const lines = linesOf(root, path);
    const remark = leadingRemark(path, lines);
    if (remark !== undefined) return { ...folder, about: remark.text };
  }
  return folder;
}

function packagesOf(root: string): ReadonlySet<string> {
  try {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(textOf(root, "package.json")) as Record<
      string,
      object
    >;
    return new Set([...Object.keys(dependencies), ...Object.keys(devDependencies)]);
  } catch {
    return new Set();
  }
}
