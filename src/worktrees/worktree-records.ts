/**
 * Records of worktrees, stored beside them:
 *
 *   <folder>/<task>                        the worktree
 *   <folder>/.state/<task>/worktree.json   its origin; written before anything is created
 *   <folder>/.state/<task>/merge.json      the journal of an unfinished merge
 *   <folder>/.state/<task>/conflicts/      both versions of files that could not be merged
 *   <folder>/.state/<task>/objects-<id>/   git objects of a merge; removed when it ends
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { parseJson } from "../lib/json.ts";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import { type GitCheckout, preparedCheckout } from "../lib/node/git-write.ts";
import { systemStamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import { type GitUser, gitUserOf } from "./worktree-git.ts";

const recordSchema = z.object({
  version: z.literal(1),
  state: z.enum(["making", "ready"]),
  taskId: z.string(),
  main: z.object({ gitDir: z.string(), workTree: z.string() }),
  common: z.string(),
  root: z.string(),
  cwd: z.string(),
  /** Empty until git has created it. */
  gitDir: z.string(),
  branch: z.string(),
  /** The commit it started from. */
  base: z.string(),
  /** The base commit contains uncommitted changes of the main tree. */
  includesUncommitted: z.boolean(),
  /** The worktree's commit that was last merged into the main tree. */
  merged: z.string().exactOptional(),
  notices: z.array(z.string()),
});

export type WorktreeRecord = z.infer<typeof recordSchema>;

const MAX_RECORD_BYTES = 64 * 1024;
const MAX_RECORDS = 1000;
const TASK_ID = /^[a-z0-9][a-z0-9-]{0,63}$/;

export function checkTaskId(taskId: string): string {
  if (TASK_ID.test(taskId)) return taskId;
  throw new TroupeError("usage", `${JSON.stringify(taskId.slice(0, 100))} cannot be the id of a task.`);
}

export function stateFolder(folder: string, taskId: string): string {
  return join(folder, ".state", checkTaskId(taskId));
}

/** A record with the git folders and the user's settings for a series of git commands. Use it for one operation only. */
export interface OpenRecord extends WorktreeRecord {
  readonly main: GitCheckout & WorktreeRecord["main"];
  readonly own: GitCheckout;
  readonly gitUser: GitUser;
}

export async function openRecord(record: WorktreeRecord): Promise<OpenRecord> {
  const own = await preparedCheckout({ gitDir: record.gitDir, workTree: record.root });
  const main = await preparedCheckout(record.main);
  return { ...record, own, main, gitUser: await gitUserOf(main) };
}

/**
 * Runs `work` with a record whose main tree stores new git objects in the session's folder. Commands can read every
 * object of the repository, so the user's uncommitted files must not become one.
 */
export async function withOwnObjects<T>(
  record: OpenRecord,
  { folder, disk }: { folder: string; disk: Disk },
  work: (record: OpenRecord) => Promise<T>,
): Promise<T> {
  const own = join(stateFolder(folder, record.taskId), `objects-${systemStamp.id("objects")}`);
  await disk.mkdir(own);
  try {
    const objects = { own, repository: join(record.common, "objects") };
    return await work({ ...record, main: { ...record.main, objects } });
  } finally {
    await disk.remove(own);
  }
}

export async function writeRecord(disk: Disk, folder: string, record: WorktreeRecord): Promise<void> {
  const own = stateFolder(folder, record.taskId);
  await disk.mkdir(own);
  const kept = recordSchema.parse(record);
  await replaceFile(disk, join(own, "worktree.json"), `${JSON.stringify(kept, null, 2)}\n`);
}

/** Returns undefined if the record is missing or invalid. */
export async function readRecord(folder: string, taskId: string): Promise<WorktreeRecord | undefined> {
  const value = await readSmallJson(join(stateFolder(folder, taskId), "worktree.json"), MAX_RECORD_BYTES);
  const record = recordSchema.safeParse(value);
  return record.success && record.data.taskId === taskId ? record.data : undefined;
}

export async function knownRecord(folder: string, taskId: string): Promise<WorktreeRecord> {
  const record = await readRecord(folder, taskId);
  if (record?.state === "ready") return record;
  throw new TroupeError("usage", `Task ${taskId} has no worktree.`, { hint: "See `troupe tasks list`." });
}

export async function allRecords(folder: string): Promise<WorktreeRecord[]> {
  const names = await readdir(join(folder, ".state")).catch(() => []);
  const ids = names.filter((name) => TASK_ID.test(name)).slice(0, MAX_RECORDS);
  const records = await Promise.all(ids.sort().map((taskId) => readRecord(folder, taskId)));
  return records.filter((record) => record !== undefined);
}

export async function readSmallJson(path: string, maxBytes: number): Promise<unknown> {
  try {
    const about = await stat(path);
    if (!about.isFile() || about.size > maxBytes) return undefined;
    const parsed = parseJson(await readFile(path, "utf8"));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined;
  }
}
