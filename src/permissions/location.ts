/** The location an approval belongs to: the repository, for all of its worktrees. */

import * as fs from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { realPath } from "../lib/node/real-path.ts";
import { smallText } from "../lib/node/small-file.ts";

const MAX_POINTER_BYTES = 4096;

/**
 * Returns the root of the git repository around `cwd`. For a linked worktree this is the main repository. Without a
 * repository it is `cwd` itself.
 */
export function locationKey(cwd: string): string {
  const start = realPath(cwd) ?? resolve(cwd);
  for (let folder = start; ; folder = dirname(folder)) {
    const entry = fs.lstatSync(join(folder, ".git"), { throwIfNoEntry: false });
    if (entry?.isDirectory()) return folder;
    if (entry?.isFile()) return mainRepository(folder) ?? folder;
    if (dirname(folder) === folder) return start;
  }
}

/**
 * Accepts a worktree only when the main repository points back at it. Otherwise any folder could claim to belong to a
 * repository with approvals.
 */
function mainRepository(worktree: string): string | undefined {
  const pointer = /^gitdir: (.+)$/m.exec(readSmall(join(worktree, ".git")) ?? "")?.[1]?.trim();
  if (pointer === undefined) return undefined;
  const gitFolder = realPath(resolve(worktree, pointer));
  const back = gitFolder && readSmall(join(gitFolder, "gitdir"))?.trim();
  const common = gitFolder && readSmall(join(gitFolder, "commondir"))?.trim();
  if (!gitFolder || !back || !common) return undefined;
  const pointsHere = realPath(resolve(gitFolder, back)) === join(worktree, ".git");
  const mainGit = realPath(isAbsolute(common) ? common : resolve(gitFolder, common));
  return pointsHere && mainGit?.endsWith("/.git") ? dirname(mainGit) : undefined;
}

const readSmall = (path: string): string | undefined => smallText(path, MAX_POINTER_BYTES);
