/** What a command in a worktree may touch of the repository it belongs to, so that `git commit` works and no more. */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Disk, writeNewFile } from "../lib/node/disk.ts";
import { knownRecord } from "./worktree-records.ts";

export interface GitAccess {
  /** The whole of git's folder; to be mounted read-only, before the others. */
  readonly repository: string;
  /** Folders in it that may be written. */
  readonly writable: readonly string[];
  /** Files and folders in those that may not, to be mounted last. All of them exist. */
  readonly readOnly: readonly string[];
}

/**
 * Asked before each command: the person's git may have packed branches since, and then folders are missing. Loose
 * objects can be written, packs cannot; of the branches only those of this session, and of them only the task's own.
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
  // A missing one could be created, and then names programs to run.
  await writeNewFile(request.disk, join(gitDir, "config.worktree"), []).catch(() => undefined);
  const own = ["commondir", "gitdir", "config.worktree"].map((name) => join(gitDir, name));
  return {
    repository,
    writable: [objects, branches, logs, gitDir],
    readOnly: [join(objects, "info"), join(objects, "pack"), ...own, ...others],
  };
}

/** The same as arguments of bubblewrap, to stand after every other mount. */
export function gitAccessMounts({ repository, writable, readOnly }: GitAccess): string[] {
  return [
    ...["--ro-bind", repository, repository],
    ...writable.flatMap((path) => ["--bind", path, path]),
    ...readOnly.flatMap((path) => ["--ro-bind", path, path]),
  ];
}
