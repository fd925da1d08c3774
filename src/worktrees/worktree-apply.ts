/**
 * Applies a merged tree to the user's files, completely or not at all. A journal with both versions of every file is
 * written first, because file systems cannot change many files at once. After a crash, the next merge or session
 * finishes the work. If that is impossible because a file changed meanwhile, the merge is rolled back.
 */
import { dirname, join } from "node:path";
import * as z from "zod";
import { entrySchema, type PathState } from "../checkpoints/checkpoint-schema.ts";
import { contentOf, entryAt, MAX_TREE_BYTES, sameEntry, survey } from "../checkpoints/checkpoint-tree.ts";
import { type Disk, replaceFile, writeNewFile } from "../lib/node/disk.ts";
import type { GitCheckout } from "../lib/node/git-write.ts";
import { PathError } from "../lib/node/paths.ts";
import { openAsIs, removeEmptyFolders, type WriteTarget } from "../lib/node/paths-write.ts";
import { sweepTemporaries } from "../lib/node/temporaries.ts";
import { TroupeError } from "../protocol/errors.ts";
import { git } from "./worktree-git.ts";
import { MISSING, type TreeChange } from "./worktree-plan.ts";
import { readSmallJson, stateFolder, type WorktreeRecord } from "./worktree-records.ts";

const versionSchema = z.object({ mode: z.string(), id: z.string() });
const journalSchema = z.object({
  version: z.literal(1),
  /** `back`: the merge could not be finished and is being rolled back. */
  direction: z.enum(["forward", "back"]),
  workTree: z.string(),
  gitDir: z.string(),
  /** The worktree's commit that the main tree contains once this is done. */
  merged: z.string(),
  files: z.array(
    z.object({
      path: z.string(),
      before: entrySchema,
      after: entrySchema,
      index: z.object({ before: versionSchema, after: versionSchema }),
    }),
  ),
  /** The branch that moves to the merge commit; the index is updated too. */
  commit: z.object({ branch: z.string(), from: z.string(), to: z.string() }).exactOptional(),
});
export type MergeJournal = z.infer<typeof journalSchema>;
type File = MergeJournal["files"][number];

const MAX_JOURNAL_BYTES = 16 * 1024 * 1024;

export interface ApplyPorts {
  readonly folder: string;
  readonly disk: Disk;
}

/** Copies both versions of every file aside. `inTheWay`: paths occupied by something that git does not track. */
export async function stage(
  record: WorktreeRecord,
  { changes, ports }: { changes: readonly TreeChange[]; ports: ApplyPorts },
): Promise<{ files: File[]; inTheWay: string[] }> {
  const { folder, disk } = ports;
  const own = stateFolder(folder, record.taskId);
  await disk.remove(join(own, "merge"));
  for (const name of ["after", "before"]) await disk.mkdir(join(own, "merge", name));
  await extract(record.main, { changes, folder: join(own, "merge", "after"), indexFile: join(own, "merge", "index") });
  const removed = new Set(changes.filter(({ after }) => after.mode === MISSING).map(({ path }) => path));
  const files: File[] = [];
  const inTheWay: string[] = [];
  for (const [number, { path, before: was, after: is }] of changes.entries()) {
    const target = join(record.main.workTree, path);
    const before = await entryAt(target);
    const after =
      is.mode === MISSING ? ({ kind: "missing" } as const) : await entryAt(join(own, "merge", "after", path));
    refuseHuge(path, [before, after]);
    const isExpected =
      was.mode === MISSING ? before.kind === "missing" : before.kind === "file" || before.kind === "link";
    const isEmptied = before.kind === "folder" && (await becomesEmpty(target, { top: record.main.workTree, removed }));
    if (!isExpected && !isEmptied) inTheWay.push(path);
    if (before.kind === "file") await keep(disk, target, join(own, "merge", "before", String(number)));
    files.push({ path, before, after, index: { before: was, after: is } });
  }
  return { files, inTheWay };
}

/** Lets git write the files, so that line endings match the user's own checkout. */
export async function extract(
  checkout: GitCheckout,
  what: { changes: readonly Pick<TreeChange, "path" | "after">[]; folder: string; indexFile: string },
): Promise<void> {
  const there = what.changes.filter(({ after }) => after.mode !== MISSING);
  if (there.length === 0) return;
  const work = { to: "write the merged files", indexFile: what.indexFile };
  const input = there.map(({ path, after }) => `${after.mode} ${after.id}\t${path}\0`).join("");
  await git(checkout, ["update-index", "-z", "--index-info"], { ...work, input });
  await git(checkout, ["checkout-index", "--all", "--quiet", "--force", `--prefix=${what.folder}/`], work);
}

function refuseHuge(path: string, entries: readonly PathState[]): void {
  if (!entries.some((entry) => entry.kind === "file" && entry.hash === "")) return;
  throw new TroupeError("limit", `${path} is larger than ${MAX_TREE_BYTES / 1024 / 1024} MiB or not a regular file.`, {
    hint: "Merge the branch of the worktree with git itself.",
  });
}

/** Returns whether all files in the folder are removed, so that a file can replace it. */
async function becomesEmpty(path: string, { top, removed }: { top: string; removed: ReadonlySet<string> }) {
  const inside = await survey([path]);
  return inside.every((one) => one.kind === "folder" || removed.has(one.path.slice(top.length + 1)));
}

async function keep(disk: Disk, path: string, to: string): Promise<void> {
  const content = await contentOf(path);
  if (content === undefined) throw new TroupeError("failed", `${path} cannot be read.`);
  await writeNewFile(disk, to, [content]);
}

export type Applied = { readonly kind: "applied" } | { readonly kind: "taken-back"; readonly because: string };

/** Writes the journal and applies it. From then on the merge is finished even after a crash. */
export async function apply(record: WorktreeRecord, journal: MergeJournal, ports: ApplyPorts): Promise<Applied> {
  await writeJournal(record, journal, ports);
  return finish(record, journal, ports);
}

/** Finishes an interrupted merge. Returns undefined if there is none. */
export async function recoverMerge(
  record: WorktreeRecord,
  ports: ApplyPorts,
): Promise<(Applied & { readonly journal: MergeJournal }) | undefined> {
  const path = journalPath(record, ports);
  const journal = journalSchema.safeParse(await readSmallJson(path, MAX_JOURNAL_BYTES));
  // Journals are written atomically; without one no file was touched.
  if (!journal.success || (await entryAt(journal.data.workTree)).kind !== "folder") return undefined;
  const applied = await finish(record, journal.data, ports);
  const folders = new Set(journal.data.files.map(({ path }) => dirname(join(journal.data.workTree, path))));
  for (const folder of folders) await sweepTemporaries(folder, ports.disk);
  return { ...applied, journal: journal.data };
}

/** Removes the journal and its copies. Call it after the record holds the outcome. */
export async function forgetMerge(record: WorktreeRecord, { folder, disk }: ApplyPorts): Promise<void> {
  await disk.remove(journalPath(record, { folder }));
  await disk.remove(join(stateFolder(folder, record.taskId), "merge"));
}

async function finish(record: WorktreeRecord, journal: MergeJournal, ports: ApplyPorts): Promise<Applied> {
  let because = "it was stopped before";
  if (journal.direction === "forward") {
    try {
      await settle(record, journal, ports);
      if (journal.commit) await moveBranch(journal, journal.commit);
      return { kind: "applied" };
    } catch (error) {
      if (!(error instanceof TroupeError || error instanceof PathError)) throw error;
      because = error.message;
    }
  }
  const back: MergeJournal = { ...journal, direction: "back" };
  await writeJournal(record, back, ports);
  await settle(record, back, ports);
  if (journal.commit) await writeIndex(back);
  return { kind: "taken-back", because };
}

/** Removes innermost paths first, then writes outermost paths first. Idempotent. */
async function settle(record: WorktreeRecord, journal: MergeJournal, { folder, disk }: ApplyPorts): Promise<void> {
  const kept = join(stateFolder(folder, record.taskId), "merge");
  const isBack = journal.direction === "back";
  const steps = journal.files.map((file, number) => ({
    path: join(journal.workTree, file.path),
    goal: isBack ? file.before : file.after,
    other: isBack ? file.after : file.before,
    source: isBack ? join(kept, "before", String(number)) : join(kept, "after", file.path),
  }));
  const scope = { cwd: journal.workTree, roots: [journal.workTree], disk };
  const sorted = steps.sort((one, two) => (one.path < two.path ? -1 : 1));
  const removals = sorted.filter(({ goal }) => goal.kind === "missing" || goal.kind === "folder");
  for (const step of [...removals].reverse()) {
    await change(step, { scope, isBack });
    await removeEmptyFolders(foldersAbove(step.path, journal.workTree), scope);
  }
  for (const step of sorted.filter((one) => !removals.includes(one))) await change(step, { scope, isBack });
}

interface Step {
  readonly path: string;
  readonly goal: PathState;
  readonly other: PathState;
  readonly source: string;
}

type Scope = Parameters<typeof openAsIs>[1];

/** Applies one step. A file that others changed fails the merge on the way forward and is skipped on the way back. */
async function change(step: Step, { scope, isBack }: { scope: Scope; isBack: boolean }): Promise<void> {
  const { path, goal } = step;
  try {
    const now = await compareEntry(step);
    if (now === "done") return;
    if (now.kind !== "missing" && (goal.kind !== "file" || now.kind === "folder"))
      await at(path, scope, (target) => target.remove());
    if (goal.kind === "link") await at(path, scope, (target) => target.makeLink(goal.target));
    if (goal.kind !== "file") return;
    const content = await contentOf(step.source);
    if (content === undefined) throw new TroupeError("storage", `${step.source} can no longer be read.`);
    await at(path, scope, async (target) => {
      if ((await compareEntry(step)) !== "done") await target.write(content, { mode: goal.mode });
    });
  } catch (error) {
    if (!isBack || !(error instanceof PathError)) throw error;
  }
}

/** Returns the current entry, or "done". Throws if it is neither version nor missing, the state between them. */
async function compareEntry({ path, goal, other }: Step): Promise<PathState | "done"> {
  const now = await entryAt(path);
  if (sameEntry(now, goal) || (goal.kind === "folder" && now.kind === "missing")) return "done";
  if (now.kind === "folder" && goal.kind === "missing") return "done"; // it came with files that are already removed
  if (now.kind === "missing" || sameEntry(now, other)) return now;
  throw new PathError("invalid", path, `${path} was changed by another program during the merge.`);
}

async function at(path: string, scope: Scope, work: (target: WriteTarget) => Promise<unknown>): Promise<void> {
  const target = await openAsIs(path, scope);
  try {
    if (target.realPath !== path) throw new PathError("invalid", path, `${path} now leads to ${target.realPath}.`);
    await work(target);
  } finally {
    await target.close();
  }
}

function foldersAbove(path: string, top: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); folder.length > top.length; folder = dirname(folder)) folders.unshift(folder);
  return folders;
}

/** Updates the index first and the branch last: the merge enters the history only when the branch moves. */
async function moveBranch(
  journal: MergeJournal,
  { branch, from, to }: NonNullable<MergeJournal["commit"]>,
): Promise<void> {
  const repository = { gitDir: journal.gitDir, workTree: journal.workTree };
  const now = (await git(repository, ["rev-parse", "--verify", branch], { to: "find the branch" })).trim();
  await writeIndex(journal);
  if (now === to) return;
  await git(repository, ["update-ref", "-m", "merge by troupe", branch, to, from], { to: `move ${branch}` });
}

async function writeIndex(journal: MergeJournal): Promise<void> {
  const repository = { gitDir: journal.gitDir, workTree: journal.workTree };
  const side = journal.direction === "back" ? "before" : "after";
  const versions = journal.files.map(({ path, index }) => ({ path, ...index[side] }));
  // Removals come first: a name cannot be a file and a folder at once.
  const sorted = versions.sort((one, two) => Number(one.mode !== MISSING) - Number(two.mode !== MISSING));
  const input = sorted.map(({ path, mode, id }) => `${mode.replace(/^0+$/, "0")} ${id}\t${path}\0`).join("");
  await git(repository, ["update-index", "-z", "--index-info"], { to: "write the index", input });
  await git(repository, ["update-index", "-q", "--refresh"], { to: "refresh the index", accept: [0, 1] });
}

async function writeJournal(
  record: WorktreeRecord,
  journal: MergeJournal,
  { folder, disk }: ApplyPorts,
): Promise<void> {
  await replaceFile(disk, journalPath(record, { folder }), JSON.stringify(journal));
}

function journalPath({ taskId }: WorktreeRecord, { folder }: { folder: string }): string {
  return join(stateFolder(folder, taskId), "merge.json");
}
