import { existsSync } from "node:fs";
import { nodeDisk } from "../../lib/node/disk.ts";
import { plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { forkFolder } from "../../runtime/sessions/fork-folder.ts";
import { recoverMerges } from "../../worktrees/worktree-merge.ts";
import { allRecords } from "../../worktrees/worktree-records.ts";
import { removeWorktree } from "../../worktrees/worktree-remove.ts";
import { unmergedTasks, worktreesFolder } from "../unmerged.ts";

/**
 * Removes a session with all its data: its files, its part of the index, and the worktrees and branches of its agents
 * in the repository. Throws, and changes nothing, if there is unmerged work and `force` is not set.
 */
export async function deleteSession(what: DeleteRequest): Promise<void> {
  const { runtime, sessionId } = what;
  const folders = [worktreesFolder(runtime.home, sessionId), forkFolder(runtime.home, sessionId)];
  for (const folder of folders) if (existsSync(folder)) await discardAll(what, folder);
  await runtime.store.remove(sessionId);
  await runtime.past.remove(sessionId);
}

interface DeleteRequest {
  readonly runtime: Pick<Runtime, "store" | "home" | "past">;
  readonly sessionId: string;
  readonly force: boolean;
}

/** Runs under the session's lock, so that no agent works in the removed worktrees. */
async function discardAll({ runtime, sessionId, force }: DeleteRequest, folder: string): Promise<void> {
  const log = await runtime.store.open(sessionId);
  try {
    if (log.heldBy) return; // removing the session then reports its holder
    await recoverMerges({ folder, disk: nodeDisk });
    if (!force) refuseUnmerged(await unmergedTasks(folder), sessionId);
    for (const record of await allRecords(folder)) await removeWorktree(record, { folder, disk: nodeDisk });
  } finally {
    await log.close();
  }
}

function refuseUnmerged(unmerged: readonly string[], sessionId: string): void {
  const [first] = unmerged;
  if (first === undefined) return;
  const names = unmerged.slice(0, MAX_NAMED).join(", ");
  const more = unmerged.length > MAX_NAMED ? ` and ${unmerged.length - MAX_NAMED} more` : "";
  throw new TroupeError(
    "failed",
    `Nothing was deleted: ${plural(unmerged.length, "agent")} did work that was not merged: ${names}${more}.`,
    { hint: `Merge it with \`troupe tasks merge ${first} --session ${sessionId}\`, or use --force.` },
  );
}

const MAX_NAMED = 8;
