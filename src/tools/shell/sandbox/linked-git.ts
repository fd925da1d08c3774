/** `.git` files and the folders they lead to. */
import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import { smallText } from "../../../lib/node/small-file.ts";
import { kindOf, realPath } from "./path-kinds.ts";

const MAX_LINK_FILE_BYTES = 4096;

/** The path in a regular file, as git reads it: spaces count, line ends at the end do not. Throws for anything else. */
function readSmall(path: string): string {
  const text = smallText(path, MAX_LINK_FILE_BYTES);
  if (text === undefined) throw new Error(`${path} is no small regular file.`);
  return text.replace(/[\r\n]+$/, "");
}

/**
 * Joins as the kernel reads paths. `resolve` would take ".." after a link for the folder that contains the link, and git
 * ends up elsewhere.
 */
const joined = (folder: string, path: string): string => (isAbsolute(path) ? path : `${folder}${sep}${path}`);

/** The folder that a `.git` file leads to. */
export function gitFolderBehind(gitFile: string): string | undefined {
  try {
    const text = readSmall(gitFile);
    if (!text.startsWith("gitdir: ")) return undefined;
    const folder = realPath(joined(dirname(gitFile), text.slice("gitdir: ".length)));
    return folder !== undefined && kindOf(folder) === "folder" ? folder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The repository of a linked worktree, if the repository confirms it: anyone can write a `.git` file, only the repository
 * itself knows its worktrees.
 */
export function linkedRepository(gitFile: string): { common: string; own: string } | undefined {
  try {
    const own = gitFolderBehind(gitFile);
    if (own === undefined) return undefined;
    const back = realpathSync.native(joined(own, readSmall(join(own, "gitdir"))));
    const common = realpathSync.native(joined(own, readSmall(join(own, "commondir"))));
    const isKnown = back === realpathSync.native(gitFile) && own.startsWith(join(common, "worktrees") + sep);
    return isKnown && basename(common) === ".git" ? { common, own } : undefined;
  } catch {
    return undefined;
  }
}
