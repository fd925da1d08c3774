/** The parts of the repository that a command in a worktree may access: enough for `git commit`, no more. */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Disk, writeNewFile } from "../lib/node/disk.ts";
import { knownRecord } from "./worktree-records.ts";

export interface GitAccess {
  /** The whole git folder. Mount it read-only, before the others. */
  readonly repository: string;
  /** Folders in it that may be written. */
  readonly writable: readonly string[];
  /** Files and folders in those that stay read-only; mount them last. All of them exist. */
  readonly readOnly: readonly string[];
}

/**
 * Call it before each command, because the user's git may have packed refs and removed folders since. Loose objects can
 * be written, packs cannot. Of the session's branches, only the task's own can be written.
 */
export async function worktreeAccess(request: { folder: string; taskId: string; disk: Disk }): Promise<GitAccess> {
  const { common, gitDir, branch, taskId } = await knownRecord(request.folder, request.taskId);
  const repository = realpathSync(common);
  const branches = join(repository, "refs", "heads", dirname(branch));
  const logs = join(repository, "logs", "refs", "heads", dirname(branch));
  const objects = join(repository, "objects");
  for (const folder of [branches, logs, join(objects, "info"), join(objects, "pack")]) await request.disk.mkdir(folder);
  const others = [branches, logs].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name !== taskId && name !== `${taskId}.lock`)
      .map((name) => join(folder, name)),
  );
  // Create it, so that the command cannot: the file can name programs for git to run.
  await writeNewFile(request.disk, join(gitDir, "config.worktree"), []).catch(() => undefined);
  const own = ["commondir", "gitdir", "config.worktree"].map((name) => join(gitDir, name));
  return {
    repository,
    writable: [objects, branches, logs, gitDir],
    readOnly: [join(objects, "info"), join(objects, "pack"), ...own, ...others],
  };
}

/** Returns the same as bubblewrap arguments. They must follow all other mounts. */
export function gitAccessMounts({ repository, writable, readOnly }: GitAccess): string[] {
  return [
    ...["--ro-bind", repository, repository],
    ...writable.flatMap((path) => ["--bind", path, path]),
    ...readOnly.flatMap((path) => ["--ro-bind", path, path]),
  ];
}
