import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "../lib/node/disk.ts";

export const worktreesFolder = (home: string, sessionId: string): string =>
  join(home, "session-state", sessionId, "worktrees");

/** Returns the agents whose worktree holds unmerged work. */
export async function unmergedTasks(folder: string): Promise<readonly string[]> {
  if (!existsSync(folder)) return [];
  const [{ allRecords }, { unmergedWork }] = await Promise.all([
    import("../worktrees/worktree-records.ts"),
    import("../worktrees/worktree-state.ts"),
  ]);
  const unmerged: string[] = [];
  for (const record of await allRecords(folder)) {
    // A worktree that was never created, or whose repository is gone, has nothing to merge.
    if (record.state !== "ready" || !statSync(record.common, { throwIfNoEntry: false })?.isDirectory()) continue;
    const { ahead, files } = await unmergedWork(record, { folder, disk: nodeDisk });
    if (ahead > 0 || files.length > 0) unmerged.push(record.taskId);
  }
  return unmerged;
}
