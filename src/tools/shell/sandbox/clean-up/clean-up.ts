/**
 * Undoes what sandboxed commands must not leave behind. Other processes run `cleanUp` and its `parts` from their source
 * text, so each of these functions uses nothing but its parameters.
 */
import type { LeftBehind } from "../leftovers.ts";
import { changing, undoing } from "./changing.ts";
import { type Before, checkingGit, checkingGitFolders, judgingConfigurations } from "./checking-git.ts";
import { checkingTrees } from "./checking-trees.ts";
import { indexing, naming } from "./naming.ts";
import { pinning, reading } from "./pinning.ts";
import { listing, searching } from "./searching.ts";
import type { CleanUpTools } from "./tools.ts";

/** The functions that `cleanUp` is made of. */
export const cleanUpParts = {
  ...{ pinning, reading, changing, undoing, listing, searching },
  ...{ judgingConfigurations, checkingGitFolders, checkingGit, indexing, naming, checkingTrees },
};

/** Returns one sentence for each change it made. Never throws. */
export function cleanUp(tools: CleanUpTools, parts: typeof cleanUpParts, left: LeftBehind): string[] {
  const { join, sep } = tools.path;
  const notes: string[] = [];
  const known = new Set(left.trees.flatMap(({ root, gitFolders }) => [join(root, ".git"), ...gitFolders]));
  const knownLinks = new Set(left.trees.flatMap(({ gitLinks }) => gitLinks));
  const before: Before = {
    isInWorkspace: (target) => left.trees.some(({ root }) => target === root || target.startsWith(root + sep)),
    isKnown: (folder) => known.has(folder),
    /** Also true for a protected link that an earlier call moved aside: it is the user's. */
    isKnownLink(link) {
      const [, path, target] = /^(.*)\.blocked-\w+\0(.*)$/s.exec(link) ?? [];
      return knownLinks.has(link) || left.links.some((one) => one.path === path && one.target === target);
    },
  };
  const pins = parts.pinning(tools, before.isInWorkspace);
  const files = { ...pins, ...parts.reading(tools, pins), ...parts.changing(tools, pins, notes) };
  const found = { ...files, ...parts.searching(tools, { ...files, ...parts.listing(tools, pins, notes) }) };
  const folders = parts.checkingGitFolders(tools, before, { ...files, ...parts.judgingConfigurations() });
  const git = parts.checkingGit(tools, before, { ...found, ...folders });
  const { checkTree } = parts.checkingTrees(tools, left, {
    ...{ ...found, ...git, ...parts.naming(tools, { ...files, ...parts.indexing() }) },
    isKnownLink: before.isKnownLink,
  });
  const { removePoint, checkLink } = parts.undoing(tools, files);
  try {
    // Children before their parents.
    for (const point of [...left.points].reverse()) removePoint(point);
    for (const tree of left.trees) checkTree(tree);
    // Last: a folder in place of a link is moved aside with its content.
    for (const link of left.links) checkLink(link);
  } finally {
    pins.letGo();
  }
  return notes;
}
