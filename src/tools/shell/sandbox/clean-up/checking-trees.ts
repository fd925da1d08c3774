import type { KnownTree, LeftBehind } from "../leftovers.ts";
import type { Changes } from "./changing.ts";
import type { Before, checkingGit } from "./checking-git.ts";
import type { naming } from "./naming.ts";
import type { Pins } from "./pinning.ts";
import type { Found, Search } from "./searching.ts";
import type { CleanUpTools } from "./tools.ts";

/** Undoes what commands left in one workspace. */
export function checkingTrees(
  { path }: CleanUpTools,
  left: LeftBehind,
  tools: Pins &
    Changes &
    Pick<Before, "isKnownLink"> & { search: Search } & ReturnType<typeof checkingGit> &
    ReturnType<typeof naming>,
) {
  const { join, sep } = path;
  const { letGo, rename, moveAside, removeLink, isKnownLink, search, checkGit, namedBy } = tools;
  /** Completes the search of the caller in folders that it could not list or name; without one, searches everything. */
  const dangerIn = (before: KnownTree): Found[] => {
    const now = left.now?.find(({ root }) => root === before.root);
    if (now === undefined) {
      const linked = before.linkedGit.map((folder) => ({ ...search(folder, "git"), gitFolders: [] }));
      return [search(before.root, "tree", before), ...linked];
    }
    const { gitFolders, gitLinks, protectedNames } = now;
    const fresh = now.unreadable.filter((folder) => !before.unreadable.includes(folder));
    const more = [...fresh, ...now.unnameable.map(rename)].map((folder) => {
      const isIn = (git: string): boolean => `${folder}${sep}`.startsWith(git + sep);
      const area = gitFolders.some(isIn) ? "bare" : "tree";
      const isInGit = folder.slice(before.root.length).split(sep).includes(".git") || before.linkedGit.some(isIn);
      return search(folder, isInGit ? "git" : area, before);
    });
    return [{ gitFolders: [...gitFolders], gitLinks: [...gitLinks], protectedNames: [...protectedNames] }, ...more];
  };
  const checkTree = (before: KnownTree): void => {
    const found = dangerIn(before);
    const git = found.flatMap(({ gitFolders }) => gitFolders);
    const isPackage = (target: string): boolean =>
      target.slice(before.root.length).includes(`${sep}node_modules${sep}`);
    // The caller's search omits packages that no index names.
    const isNamed = left.now ? () => true : namedBy([join(before.root, ".git"), ...before.gitFolders, ...git]);
    // Inner ones first: entries that were moved aside can no longer be found.
    for (const target of git.toReversed()) {
      if (!before.gitFolders.includes(target) && (!isPackage(target) || isNamed(target))) checkGit(target);
      letGo();
    }
    for (const link of found.flatMap(({ gitLinks }) => gitLinks)) {
      if (!isKnownLink(link) && (!isPackage(link) || isNamed(link))) removeLink(link);
      letGo();
    }
    for (const target of found.flatMap(({ protectedNames }) => protectedNames).reverse()) {
      if (!before.protectedNames.includes(target) && !isPackage(target))
        moveAside(target, "commands may not create this name");
      letGo();
    }
  };
  return { checkTree };
}
