/**
 * Which board belongs to a folder. A folder can claim any address of origin, and so read and write what belongs to another
 * repository: as with memories, what it says of itself counts only where a person trusts it.
 */
import { repositoryPlaces } from "../memory/place.ts";
import { workingDirectory } from "../working-directory.ts";
import type { BoardKey } from "./board.ts";

/** Marks a repository that is a folder of this machine. */
const LOCAL = "local:";
/** Where there is no branch: outside of a repository, or on a commit of its own. */
const DEFAULT_BRANCH = "default";

export function boardKey(cwd: string, options: { readonly isTrusted: boolean }): BoardKey {
  const [place] = repositoryPlaces(cwd, options);
  const label = place?.label ?? cwd;
  const repository = place?.key.startsWith("origin-") ? label : `${LOCAL}${label}`;
  return { repository, branch: workingDirectory(cwd).branch ?? DEFAULT_BRANCH };
}
