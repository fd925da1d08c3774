/**
 * Stores files that a shell command may delete or overwrite, before it runs, so that `troupe undo` can restore them. A
 * plain `rm build` copies `build`. A command that may do anything copies the workspace, of which only files changed
 * since the last time are read. If that exceeds the limits, the command still runs and a notice says so.
 */
import { lstatSync, readdirSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { GIT_INTERNALS, PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../lib/protected-names.ts";
import { plural } from "../lib/text.ts";
import { analyseShell, loadShellParser, type ShellParser } from "../permissions/shell/analyse.ts";
import { destructiveUse, type EndangeredPath } from "../permissions/shell/destructive.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { StoredFiles, UpcomingCommand } from "../tools/shell/shells.ts";
import type { TreeOptions } from "./checkpoint-tree.ts";
import type { Checkpoints, StoredTree } from "./checkpoints.ts";

interface CommandCheckpointOptions {
  readonly checkpoints: Checkpoints;
  /** Real paths that are never stored: troupe's own state. */
  readonly except: readonly string[];
  readonly home?: string;
  readonly limits?: Pick<TreeOptions, "entries" | "bytes" | "milliseconds">;
}

const LIMITS = { entries: 5000, bytes: 64 * 1024 * 1024, milliseconds: 1000 };
const MAX_NAMED = 200;

/** Returns the callback for `ShellsOptions.beforeRun`. It does not throw for lack of space or time. */
export function commandCheckpoints(
  options: CommandCheckpointOptions,
): (command: UpcomingCommand) => Promise<StoredFiles | undefined> {
  const { checkpoints, except } = options;
  let parser: Promise<ShellParser> | undefined;
  const limits: TreeOptions = {
    ...LIMITS,
    ...options.limits,
    leavesOut: (path) => isMadeAnew(path) || isPlaceholder(path) || except.some((folder) => isInside(path, folder)),
  };
  return async ({ text, cwd, roots, toolCallId }) => {
    parser ??= loadShellParser();
    const use = destructiveUse(analyseShell(await parser, text));
    if (use.kind === "none") return undefined;
    const at = { cwd, home: options.home ?? "" };
    const named = existing(use.paths, at).filter((path) => !limits.leavesOut?.(path));
    const keep = (paths: readonly string[]): Promise<StoredTree | string> =>
      checkpoints.storeTree(paths, toolCallId, limits).catch(unkept);
    if (use.kind === "paths") {
      // Files that are not there yet are looked at too, to know which command created them.
      const coming = missing(use.paths, at).filter((path) => !limits.leavesOut?.(path));
      if (named.length + coming.length === 0) return undefined;
      return storedFiles(await keep([...named, ...coming]), named.join(", "));
    }
    const folders = roots.length === 0 ? [cwd] : roots.filter((root) => !except.some((own) => isInside(root, own)));
    const all = await keep([...new Set([...folders, ...named])]);
    if (typeof all !== "string" || named.length === 0) return storedFiles(all, folders.join(", "));
    const some = await keep(named);
    const rest = typeof some === "string" ? "" : ` Only ${named.join(", ")} can be restored.`;
    return { ...storedFiles(some, ""), notice: notice(folders.join(", "), all) + rest };
  };
}

/** Returns whether tools can recreate the folder or never delete from it: packages, and git objects. */
function isMadeAnew(path: string): boolean {
  const name = basename(path);
  return name === "node_modules" || ((name === "objects" || name === "lfs") && isGitFolder(dirname(path)));
}

function isGitFolder(folder: string): boolean {
  return basename(folder) === ".git" || folder.includes(`${sep}.git${sep}modules${sep}`);
}

/** Sandboxes of other commands create and remove empty entries with these names. */
const PLACEHOLDERS = new Set([
  ...[".git", "info", ...PROTECTED_FOLDERS, ...PROTECTED_FILES, ...GIT_INTERNALS.folders],
  ...Object.keys(PROTECTED_PARTS),
]);
const PLACEHOLDER_FILES = new Set(["config.worktree", "attributes", "commondir"]);

function isPlaceholder(path: string): boolean {
  const name = basename(path);
  if (PLACEHOLDER_FILES.has(name)) return statOf(path)?.size === 0;
  if (!PLACEHOLDERS.has(name) && !PROTECTED_PARTS[basename(dirname(path))]?.includes(name)) return false;
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/** Returns the real paths of existing files. For a link it returns the link and its target. */
function existing(paths: readonly EndangeredPath[], folders: { cwd: string; home: string }): string[] {
  const found = new Set<string>();
  for (const { path, whole } of paths.slice(0, MAX_NAMED)) {
    const written = folders.home === "" ? path : path.replace(/^~(?=\/|$)/, folders.home);
    for (const at of [realName(resolve(folders.cwd, written)), realOf(resolve(folders.cwd, written))]) {
      const stat = at === undefined ? undefined : statOf(at);
      if (at !== undefined && stat !== undefined && (whole || !stat.isDirectory())) found.add(at);
    }
  }
  return [...found];
}

/** Returns the paths in existing folders at which there is nothing yet. */
function missing(paths: readonly EndangeredPath[], folders: { cwd: string; home: string }): string[] {
  return paths.slice(0, MAX_NAMED).flatMap(({ path }) => {
    const written = folders.home === "" ? path : path.replace(/^~(?=\/|$)/, folders.home);
    const at = realName(resolve(folders.cwd, written));
    return at !== undefined && statOf(at) === undefined ? [at] : [];
  });
}

/** Returns the path with its folder resolved, but not a link at its end. */
function realName(path: string): string | undefined {
  const folder = realOf(dirname(path));
  return folder === undefined ? undefined : join(folder, basename(path));
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder + sep);
}

/** Returns why there is no checkpoint. Rethrows errors that are bugs. */
function unkept(error: unknown): string {
  if (error instanceof TroupeError) return error.kind === "limit" ? "it is too much" : error.message;
  if (error instanceof Error && "code" in error) return error.message;
  throw error;
}

function storedFiles(kept: StoredTree | string, where: string): StoredFiles {
  if (typeof kept === "string") return { notice: notice(where, kept), settle: async () => undefined };
  const { unreadable } = kept;
  return {
    settle: (changedBy) => kept.settle(changedBy).catch((error: unknown) => void unkept(error)),
    ...(unreadable.length > 0 && {
      notice: notice(unreadable.slice(0, 3).join(", "), `${plural(unreadable.length, "file")} cannot be read`),
    }),
  };
}

function notice(where: string, reason: string): string {
  return `No checkpoint of ${where} before commands: ${reason}. What they delete or overwrite there cannot be undone.`;
}
