/** Turns the files of a work tree into a git tree, without touching the work tree or its index. */
import { realpathSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { GitCheckout } from "../lib/node/git-write.ts";
import { isEnvironmentFile } from "../lib/protected-names.ts";
import { TroupeError } from "../protocol/errors.ts";
import { git } from "./worktree-git.ts";

export interface UncommittedChanges {
  /** Paths that differ from HEAD in the index or on disk, or are new and not ignored. */
  readonly paths: readonly string[];
  /** Paths with unresolved merge conflicts. */
  readonly unmerged: readonly string[];
  /** Nested repositories; never included. */
  readonly nested: readonly string[];
}

const MAX_CHANGES = 20_000;

export async function changesIn(
  checkout: GitCheckout,
  { excludesFile, signal }: { excludesFile?: string | undefined; signal?: AbortSignal | undefined } = {},
): Promise<UncommittedChanges> {
  const excludes = excludesFile === undefined ? [] : ["-c", `core.excludesFile=${excludesFile}`];
  const flags = ["--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"];
  const listing = await git(checkout, [...excludes, "status", ...flags], { to: "see what has changed", signal });
  const entries = listing.split("\0").filter((entry) => entry !== "");
  if (entries.length > MAX_CHANGES) {
    throw new TroupeError("limit", `More than ${MAX_CHANGES} files have changed in ${checkout.workTree}.`, {
      hint: "Commit them, or add generated files to .gitignore.",
    });
  }
  const found = entries.map(parseEntry);
  const paths = found.filter(({ kind }) => kind === "changed").map(({ path }) => path);
  return {
    paths: paths.map(refuseUnreadable),
    unmerged: found.filter(({ kind }) => kind === "unmerged").map(({ path }) => path),
    nested: found.filter(({ kind }) => kind === "nested").map(({ path }) => path),
  };
}

/** Number of fields before the path, by line type. */
const FIELDS: Readonly<Record<string, number>> = { "1": 8, u: 10, "?": 1 };

function parseEntry(entry: string): { kind: "changed" | "unmerged" | "nested" | "other"; path: string } {
  const fields = FIELDS[entry[0] ?? ""];
  if (fields === undefined) return { kind: "other", path: "" };
  const path = entry.split(" ").slice(fields).join(" ");
  if (path.endsWith("/")) return { kind: "nested", path };
  return { kind: entry[0] === "u" ? "unmerged" : "changed", path };
}

/** Throws for names that are not UTF-8: they were decoded with replacement characters, so the file would be missed. */
function refuseUnreadable(path: string): string {
  if (!path.includes("\ufffd")) return path;
  throw new TroupeError("failed", `The name of ${path} is not valid UTF-8; such files cannot be copied.`);
}

/** Returns the tree of `commit` with the paths as they are on disk. The caller must remove `indexFile`. */
export async function snapshotTree(
  checkout: GitCheckout,
  options: { commit: string; paths: readonly string[]; indexFile: string; signal?: AbortSignal | undefined },
): Promise<string> {
  const { commit, paths, indexFile, signal } = options;
  const work = { to: "take a snapshot of the files", indexFile, signal };
  await git(checkout, ["read-tree", commit], work);
  if (paths.length > 0) {
    const flags = ["--add", "--remove", "--replace", "-z", "--stdin"];
    await git(checkout, ["update-index", ...flags], { ...work, input: paths.map((path) => `${path}\0`).join("") });
  }
  return (await git(checkout, ["write-tree"], work)).trim();
}

/**
 * Returns the `.env` files among the paths, and the files to which those that are links lead. They must not become
 * objects of the repository: commands in the sandbox, which hides the files, can read all objects.
 */
export function secretPaths({ workTree }: GitCheckout, paths: readonly string[]): ReadonlySet<string> {
  const named = paths.filter((path) => isEnvironmentFile(basename(path)));
  return new Set(named.flatMap((path) => [path, relative(realOf(workTree), realOf(join(workTree, path)))]));
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Returns the paths that git runs through a filter program, such as Git LFS. */
export async function filteredPaths(
  checkout: GitCheckout,
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  if (paths.length === 0) return [];
  const input = paths.map((path) => `${path}\0`).join("");
  const listing = await git(checkout, ["check-attr", "-z", "--stdin", "filter"], {
    to: "read attributes",
    input,
    signal,
  });
  const parts = listing.split("\0");
  const found: string[] = [];
  for (let index = 0; index + 2 < parts.length; index += 3) {
    if (!["unspecified", "unset"].includes(parts[index + 2] ?? "")) found.push(parts[index] ?? "");
  }
  return found;
}
