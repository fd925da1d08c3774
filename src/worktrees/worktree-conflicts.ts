/** Writes both versions of every file that could not be merged, so that the user can open them side by side. */
import { basename, join } from "node:path";
import { entryAt } from "../checkpoints/checkpoint-tree.ts";
import type { Disk } from "../lib/node/disk.ts";
import { extract } from "./worktree-apply.ts";
import { git } from "./worktree-git.ts";
import type { ConflictStage } from "./worktree-plan.ts";
import { stateFolder, type WorktreeRecord } from "./worktree-records.ts";

export interface Conflict {
  readonly path: string;
  /** Path of the main tree's version; undefined if it was deleted there or is too large. */
  readonly main: string | undefined;
  /** Path of the task's version. */
  readonly task: string | undefined;
  /** Path of the version that both started from. */
  readonly start: string | undefined;
}

const MAX_CONFLICTS = 50;
const MAX_VERSION_BYTES = 1024 * 1024;

/** Returns all conflicts; only the first `MAX_CONFLICTS` have version files. */
export async function writeConflicts(
  record: WorktreeRecord,
  { stages, folder, disk }: { stages: readonly ConflictStage[]; folder: string; disk: Disk },
): Promise<Conflict[]> {
  const own = join(stateFolder(folder, record.taskId), "conflicts");
  await disk.remove(own);
  await disk.mkdir(own);
  const paths = [...new Set(stages.map(({ path }) => path))];
  const small = await smallEnough(record, stages);
  const shown = new Set(paths.slice(0, MAX_CONFLICTS));
  const changes = small
    .filter(({ path }) => shown.has(path))
    .map(({ path, side, id }) => ({ path: nameOf(paths.indexOf(path), path, side), after: { mode: "100644", id } }));
  await extract(record.main, { changes, folder: own, indexFile: join(own, ".index") });
  await disk.remove(join(own, ".index"));
  const conflicts: Conflict[] = [];
  for (const [number, path] of paths.entries()) {
    const writeSide = async (side: ConflictStage["side"]): Promise<string | undefined> => {
      const file = join(own, nameOf(number, path, side));
      return (await entryAt(file)).kind === "file" ? file : undefined;
    };
    conflicts.push({
      path,
      main: await writeSide("main"),
      task: await writeSide("task"),
      start: await writeSide("start"),
    });
  }
  return conflicts;
}

const nameOf = (number: number, path: string, side: string): string => `${number + 1}/${side}/${basename(path)}`;

async function smallEnough(record: WorktreeRecord, stages: readonly ConflictStage[]): Promise<ConflictStage[]> {
  const blobs = stages.filter(({ mode }) => mode !== "160000");
  const input = blobs.map(({ id }) => `${id}\n`).join("");
  const listing = await git(record.main, ["cat-file", "--batch-check=%(objectsize)"], { to: "measure files", input });
  const sizes = listing.split("\n").map(Number);
  return blobs.filter((_, index) => (sizes[index] ?? Number.POSITIVE_INFINITY) <= MAX_VERSION_BYTES);
}
