/** Finds the repositories that git would enter from others, because an index names them. */
import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { repositoriesIn } from "../git-index.ts";
import { gitFolderBehind } from "./linked-git.ts";
import { isMissing, realPath } from "./path-kinds.ts";

/** Paths as stored in indexes, relative to a worktree, or "any" when they are unknown. */
export type NamedRepositories = ReadonlySet<string> | "any";

/** An index that changed this recently can change again without a new time stamp. */
const SETTLED_AFTER_MS = 50;

export class RepositoryIndexes {
  readonly #known = new Map<string, { readonly changed: string; readonly names: readonly string[] | undefined }>();

  /** Returns the repositories named by these git folders, `.git` files and links. */
  namedBy(git: readonly string[]): NamedRepositories {
    const named = new Set<string>();
    const isReached = new Set<string>();
    // Those not called `.git` come last: most belong to the worktree of a `.git` file.
    for (const path of [...git].sort((one, other) => Number(isPlain(other)) - Number(isPlain(one)))) {
      const { folder, names } = this.#indexOf(path);
      if (!isPlain(path) && isReached.has(path)) continue;
      isReached.add(folder);
      if (names?.some((name) => isElsewhere(path, name)) ?? true) return "any";
      for (const name of names ?? []) named.add(name);
    }
    return named;
  }

  /** Returns the git folder that a path leads to, and the names in its index. */
  #indexOf(git: string): { folder: string; names: readonly string[] | undefined } {
    try {
      const folder = lstatSync(git).isFile() ? gitFolderBehind(git, [sep]) : realPath(git);
      if (folder === undefined) return { folder: git, names: [] };
      const path = join(folder, "index");
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat === undefined) return { folder, names: [] };
      const changed = `${stat.ino} ${stat.ctimeMs} ${stat.size}`;
      const known = this.#known.get(path);
      if (known?.changed === changed) return { folder, names: known.names };
      // Entries may also be in a shared index beside it.
      const names = readdirSync(folder).some(isSharedIndex) ? undefined : repositoriesIn(path);
      if (Date.now() - stat.ctimeMs > SETTLED_AFTER_MS) this.#known.set(path, { changed, names });
      return { folder, names };
    } catch (error) {
      return { folder: git, names: isMissing(error) ? [] : undefined };
    }
  }
}

const isPlain = (git: string): boolean => basename(git) === ".git";
const isSharedIndex = (name: string): boolean => name.startsWith("sharedindex.");

/**
 * Returns whether git may find the repository under another path: through a link, or in a worktree that is not known
 * here.
 */
function isElsewhere(git: string, name: string): boolean {
  if (!isPlain(git) || name.includes("\ufffd")) return true;
  const path = join(dirname(git), name);
  try {
    return (realPath(path) ?? path) !== path;
  } catch {
    return true;
  }
}

/** Returns whether a path is a named repository or inside one. */
export function isInNamed(path: string, named: NamedRepositories): boolean {
  return named === "any" || [...named].some((name) => `${path}/`.includes(`/${name}/`));
}

/** Like `isInNamed`, but also true when a named repository may be inside the path. */
export function mayHoldNamed(path: string, named: NamedRepositories): boolean {
  if (named === "any" || isInNamed(path, named)) return true;
  const isEndOf = (parts: readonly string[]): boolean => `${path}/`.endsWith(`/${parts.join("/")}/`);
  return [...named].some((name) => {
    const parts = name.split("/");
    return parts.some((_, index) => index > 0 && isEndOf(parts.slice(0, index)));
  });
}
