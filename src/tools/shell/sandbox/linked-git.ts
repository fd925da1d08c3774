/** Resolves `.git` files to the folders they lead to. */
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { isInside } from "../../../lib/node/paths.ts";
import { smallText } from "../../../lib/node/small-file.ts";
import { kindOf, oddName, realPath, Unprotectable } from "./path-kinds.ts";

const MAX_LINK_FILE_BYTES = 4096;

/**
 * Returns the path in a regular file, as git reads it: spaces count, trailing line breaks do not. Throws for anything
 * else.
 */
function readSmall(path: string): string {
  const text = smallText(path, MAX_LINK_FILE_BYTES);
  if (text === undefined) throw new Error(`${path} is not a small regular file.`);
  return text.replace(/[\r\n]+$/, "");
}

/**
 * Joins paths as the kernel reads them. `resolve` would take ".." after a link for the folder that contains the link,
 * while git ends up elsewhere.
 */
const joinPath = (folder: string, path: string): string => (isAbsolute(path) ? path : `${folder}${sep}${path}`);

/**
 * Returns the folder that a `.git` file leads to. Throws an `Unprotectable` for one in the folders `within` that no
 * path can name.
 */
export function gitFolderBehind(gitFile: string, within: readonly string[]): string | undefined {
  try {
    const text = readSmall(gitFile);
    if (!text.startsWith("gitdir: ")) return undefined;
    const link = text.slice("gitdir: ".length);
    const path = joinPath(dirname(gitFile), link);
    if (link.includes("\ufffd")) {
      if (isInside(resolve(path), within)) throw oddName(gitFile);
      return undefined;
    }
    const folder = realPath(path, within);
    return folder !== undefined && kindOf(folder) === "folder" ? folder : undefined;
  } catch (error) {
    if (error instanceof Unprotectable) throw error;
    return undefined;
  }
}

/**
 * Returns the repository of a linked worktree, if the repository confirms it: anyone can write a `.git` file, but only
 * the repository itself knows its worktrees.
 */
export function linkedRepository(gitFile: string): { common: string; own: string } | undefined {
  try {
    const own = gitFolderBehind(gitFile, []);
    if (own === undefined) return undefined;
    const back = realPath(joinPath(own, readSmall(join(own, "gitdir"))));
    const common = realPath(joinPath(own, readSmall(join(own, "commondir"))));
    if (back === undefined || common === undefined) return undefined;
    const isKnown = back === realPath(gitFile) && own.startsWith(join(common, "worktrees") + sep);
    return isKnown && basename(common) === ".git" ? { common, own } : undefined;
  } catch {
    return undefined;
  }
}
