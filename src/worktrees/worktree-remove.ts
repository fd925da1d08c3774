/** Removes worktrees, and finds those left behind by a crash. */
import { statSync } from "node:fs";
import type { Disk } from "../lib/node/disk.ts";
import type { GitCheckout } from "../lib/node/git-write.ts";
import { TroupeError } from "../protocol/errors.ts";
import { git, gitCode, refFiles, refuseLinks } from "./worktree-git.ts";
import { recoverMerges } from "./worktree-merge.ts";
import { allRecords, readRecord, stateFolder, type WorktreeRecord } from "./worktree-records.ts";
import { type UnmergedWork, unmergedWork } from "./worktree-state.ts";

export type Discarded = { readonly kind: "discarded" } | { readonly kind: "refused"; readonly work: UnmergedWork };

/** Removes the worktree and its branch. Refuses if there is unmerged work, unless `force` is set. */
export async function discardWorktree(request: {
  readonly folder: string;
  readonly taskId: string;
  readonly disk: Disk;
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}): Promise<Discarded> {
  const { folder, taskId, disk, force = false, signal } = request;
  await recoverMerges({ folder, disk }); // the journal of an unfinished merge is beside the worktree
  const record = await readRecord(folder, taskId);
  if (!record) throw new TroupeError("usage", `Task ${taskId} has no worktree.`, { hint: "See `troupe tasks list`." });
  if (!force && record.state === "ready" && isFolder(record.common)) {
    const work = await unmergedWork(record, { folder, disk, signal });
    if (work.ahead > 0 || work.files.length > 0) return { kind: "refused", work };
  }
  await removeWorktree(record, { folder, disk });
  return { kind: "discarded" };
}

/** Removes the worktree, its branch and finally its record. Can be repeated after an interruption at any step. */
export async function removeWorktree(
  record: WorktreeRecord,
  { folder, disk }: { folder: string; disk: Disk },
): Promise<void> {
  const { common, root, branch, taskId } = record;
  await disk.remove(root);
  if (isFolder(common)) {
    const checkout: GitCheckout = { gitDir: common, workTree: folder };
    const to = "remove the worktree";
    const removed = await gitCode(checkout, ["worktree", "remove", "--force", "--force", root], {
      to,
      accept: [0, 128],
    });
    if (removed.code !== 0 && (await listRegistered(checkout)).some(({ path }) => path === root)) {
      throw new TroupeError("failed", `git did not remove the worktree ${root}.`, {
        hint: "Try `git worktree remove --force`.",
      });
    }
    const name = `refs/heads/${branch}`;
    refuseLinks(refFiles(common, branch));
    const found = await git(checkout, ["for-each-ref", "--format=%(refname)", name], { to });
    if (found.trim() === name) await git(checkout, ["update-ref", "--no-deref", "-d", name], { to });
  }
  await disk.remove(stateFolder(folder, taskId));
}

export interface ListedWorktree {
  readonly taskId: string | undefined;
  readonly root: string;
  readonly branch: string | undefined;
  /**
   * `unfinished`: creation was interrupted. `gone`: its folder was removed. `stray`: only git knows it, there is no
   * record.
   */
  readonly state: "ready" | "unfinished" | "gone" | "stray";
}

/** Returns a session's recorded worktrees, and others that git has in the same folder. */
export async function listWorktrees({ folder }: { folder: string }): Promise<ListedWorktree[]> {
  const records = await allRecords(folder);
  const listed: ListedWorktree[] = records.map((record) => ({
    taskId: record.taskId,
    root: record.root,
    branch: record.branch,
    state: record.state === "making" ? "unfinished" : isFolder(record.root) ? "ready" : "gone",
  }));
  const known = new Set(records.map(({ root }) => root));
  for (const common of new Set(records.map((record) => record.common))) {
    const entries = isFolder(common) ? await listRegistered({ gitDir: common, workTree: folder }) : [];
    for (const { path, branch } of entries) {
      const isOurs = path.startsWith(`${folder}/`) && !known.has(path);
      if (isOurs) listed.push({ taskId: undefined, root: path, branch, state: "stray" });
    }
  }
  return listed;
}

async function listRegistered(checkout: GitCheckout): Promise<{ path: string; branch: string | undefined }[]> {
  const listing = await git(checkout, ["worktree", "list", "--porcelain", "-z"], { to: "list the worktrees" });
  return listing.split("\0\0").flatMap((entry) => {
    const fields = entry.split("\0");
    const value = (name: string) => fields.find((field) => field.startsWith(`${name} `))?.slice(name.length + 1);
    const path = value("worktree");
    return path === undefined ? [] : [{ path, branch: value("branch")?.replace("refs/heads/", "") }];
  });
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
