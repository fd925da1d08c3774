/** Finds instruction files. A folder without any costs a few name lookups, and no file is opened. */
import { lstatSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { isInside, openForReading, PathError, readDirectory } from "../lib/node/paths.ts";

/** In prompt order. */
const PROJECT_FILES = [
  ".github/copilot-instructions.md",
  "AGENTS.md",
  "CLAUDE.md",
  ".claude/CLAUDE.md",
  "GEMINI.md",
  ".troupe/instructions.md",
] as const;
const RULE_FOLDERS = [
  { folder: ".github/instructions", ending: ".instructions.md" },
  { folder: ".claude/rules", ending: ".md" },
] as const;
const HIDDEN_FOLDERS = [".github", ".claude", ".troupe"] as const;
const MAX_LEVELS = 32;
const MAX_DEPTH = 6;
const MAX_NAMES = 2_000;
const MAX_RULES = 100;

export interface InstructionLimits {
  /** Real paths that files must not lead out of. Empty means no limit. */
  readonly roots: readonly string[];
  readonly onNotice: (notice: string) => void;
}

/** Returns absolute paths of a project folder's instruction files, and of its rules for certain files. */
export async function filesOf(folder: string, scope: InstructionLimits): Promise<{ files: string[]; rules: string[] }> {
  const hidden = new Set<string>(HIDDEN_FOLDERS.filter((name) => exists(join(folder, name))));
  const isPresent = (path: string): boolean => {
    const [first = ""] = path.split("/");
    return (!first.startsWith(".") || hidden.has(first)) && exists(join(folder, path));
  };
  const rules: string[] = [];
  for (const rule of RULE_FOLDERS.filter((rule) => isPresent(rule.folder))) {
    rules.push(...(await filesBelow(join(folder, rule.folder), { ...scope, ending: rule.ending })));
  }
  return { files: PROJECT_FILES.filter(isPresent).map((path) => join(folder, path)), rules };
}

/**
 * Returns the folders from `root` down to `folder`, both included. If there are too many, returns the root and the
 * deepest ones.
 */
export function levelsBetween(root: string, folder: string): string[] {
  if (!isInside(folder, [root])) return [];
  const levels = [folder];
  for (let level = folder; level !== root; ) {
    level = dirname(level);
    levels.push(level);
  }
  return levels.length <= MAX_LEVELS ? levels.reverse() : [root, ...levels.slice(0, MAX_LEVELS - 1).reverse()];
}

/** Returns files with this name ending, sorted within their folder, at most a hundred. */
export async function filesBelow(
  folder: string,
  { ending, depth = MAX_DEPTH, ...scope }: InstructionLimits & { ending: string; depth?: number },
): Promise<string[]> {
  const found: string[] = [];
  let namesLeft = MAX_NAMES;
  const walk = async (at: string, levelsLeft: number): Promise<void> => {
    for (const name of await namesIn(at, scope)) {
      if (found.length >= MAX_RULES || namesLeft-- <= 0) return;
      if (name.endsWith(ending)) found.push(join(at, name));
      else if (levelsLeft > 0 && mayBeFolder(join(at, name))) await walk(join(at, name), levelsLeft - 1);
    }
  };
  await walk(folder, depth);
  if (found.length >= MAX_RULES || namesLeft < 0) {
    scope.onNotice(`${folder} has too many files: only the first ${found.length} ending in ${ending} are used.`);
  }
  return found;
}

/** Returns no names for a folder that cannot be read. */
async function namesIn(folder: string, { roots, onNotice }: InstructionLimits): Promise<string[]> {
  try {
    const opened = await openForReading(folder, { cwd: folder, roots });
    try {
      return opened.kind === "directory" ? (await readDirectory(opened)).names : [];
    } finally {
      await opened.handle.close();
    }
  } catch (error) {
    if (!(error instanceof Error && (error instanceof PathError || "code" in error))) throw error;
    const isOutside = error instanceof PathError && error.problem === "outside";
    if (isOutside) onNotice(`${folder} was not read: it is a link to a place outside its parent folder.`);
    return [];
  }
}

function mayBeFolder(path: string): boolean {
  const stat = lstat(path);
  return stat !== undefined && (stat.isDirectory() || stat.isSymbolicLink());
}

/** Returns the path itself if it is a folder, otherwise its parent, whether or not it exists. */
export function folderOf(path: string): string {
  return lstat(path)?.isDirectory() ? path : dirname(path);
}

export function exists(path: string): boolean {
  return lstat(path) !== undefined;
}

function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
