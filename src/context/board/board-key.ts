/**
 * Finds the board of a folder. A folder can claim any origin URL and could so read and write another repository's
 * board. As for memories, its origin counts only if the user trusts the folder.
 */
import { repositorySpaces } from "../memory/space.ts";
import { workingDirectory } from "../working-directory.ts";
import type { BoardKey } from "./board.ts";

/** Prefix for a repository that is identified by its path on this machine. */
const LOCAL = "local:";
/** The branch name outside of a repository and on a detached HEAD. */
const DEFAULT_BRANCH = "default";

export function boardKey(cwd: string, options: { readonly isTrusted: boolean }): BoardKey {
  const [space] = repositorySpaces(cwd, options);
  const label = space?.label ?? cwd;
  const repository = space?.key.startsWith("origin-") ? label : `${LOCAL}${label}`;
  return { repository, branch: workingDirectory(cwd).branch ?? DEFAULT_BRANCH };
}
