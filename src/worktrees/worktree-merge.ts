/**
 * Merges an agent's work from its worktree into the user's work tree. Unless the result is "merged", the main tree is
 * unchanged and the result says why.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import { withFileLock } from "../lib/node/file-lock.ts";
import type { Identity } from "../lib/node/git-write.ts";
import { systemStamp } from "../lib/stamp.ts";
import { clip } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { apply, forgetMerge, type MergeJournal, recoverMerge, stage } from "./worktree-apply.ts";
import { type Conflict, writeConflicts } from "./worktree-conflicts.ts";
import { git, gitCode, NOBODY, refFiles, refuseLinks } from "./worktree-git.ts";
import { type MergePlan, planMerge } from "./worktree-plan.ts";
import {
  GITLINK,
  type ProtectedChange,
  protectedNames,
  protectedTargets,
  refuseMalformed,
} from "./worktree-protection.ts";
import {
  allRecords,
  knownRecord,
  type OpenRecord,
  openRecord,
  stateFolder,
  type WorktreeRecord,
  withOwnObjects,
  writeRecord,
} from "./worktree-records.ts";
import { filteredPaths } from "./worktree-snapshot.ts";
import { type Tip, tipOf } from "./worktree-state.ts";

/** `files`: uncommitted changes for review. `squash`: one commit. `merge`: the branch with its commits. */
export type MergeKind = "files" | "squash" | "merge";

export interface MergeRequest {
  readonly folder: string;
  readonly taskId: string;
  readonly as?: MergeKind;
  /** Commit message; only the first line is used. */
  readonly description?: string;
  /** Folder with troupe's state, which no merge may write. */
  readonly stateRoot: string;
  /** Asks the user about protected changes. Without it they are refused. */
  permit?(changes: readonly ProtectedChange[]): Promise<boolean>;
  readonly disk: Disk;
  readonly signal?: AbortSignal;
}

export type MergeResult =
  | { readonly kind: "merged"; readonly files: readonly string[]; readonly commit?: string }
  | { readonly kind: "nothing" }
  /** Both sides changed these. */
  | { readonly kind: "conflict"; readonly conflicts: readonly Conflict[] }
  /** The main tree has uncommitted changes in these files that would be lost. */
  | { readonly kind: "dirty"; readonly files: readonly string[] }
  /** These can run code later or change rules, and the user did not agree. */
  | { readonly kind: "protected"; readonly changes: readonly ProtectedChange[] }
  /** Applying failed and was rolled back, except for files that others changed meanwhile. */
  | { readonly kind: "taken-back"; readonly because: string };

export async function mergeWorktree(request: MergeRequest): Promise<MergeResult> {
  const { folder, taskId, disk } = request;
  const path = join(folder, ".state", "merge");
  return await withFileLock({ path, disk, Failure: TroupeError }, async () => {
    await finishOne(await knownRecord(folder, taskId), request);
    const record = await openRecord(await knownRecord(folder, taskId));
    refuseUnlessSound(record);
    const tip = await commitAll(record, request);
    return await bring(record, { request, tip });
  });
}

/**
 * Finishes merges interrupted by a crash; returns their task ids. Call it when a session opens, before files are read.
 */
export async function recoverMerges({ folder, disk }: { folder: string; disk: Disk }): Promise<string[]> {
  const finished: string[] = [];
  const path = join(folder, ".state", "merge");
  const records = await allRecords(folder);
  if (records.length === 0) return finished;
  await withFileLock({ path, disk, Failure: TroupeError }, async () => {
    for (const record of records) if (await finishOne(record, { folder, disk })) finished.push(record.taskId);
  });
  return finished;
}

async function finishOne(record: WorktreeRecord, ports: { folder: string; disk: Disk }): Promise<boolean> {
  const recovered = await recoverMerge(record, ports);
  if (!recovered) return false;
  if (recovered.kind === "applied") await noteMerged(record, recovered.journal.merged, ports);
  await forgetMerge(record, ports);
  return true;
}

async function noteMerged(record: WorktreeRecord, merged: string, { folder, disk }: { folder: string; disk: Disk }) {
  await writeRecord(disk, folder, { ...record, merged });
}

function refuseUnlessSound({ gitDir, common, branch }: WorktreeRecord): void {
  const own = ["", "HEAD", "index", "logs", "logs/HEAD"].map((name) => join(gitDir, name));
  refuseLinks([...own, ...refFiles(common, branch)]);
}

/**
 * Commits everything in the worktree on its branch. Moves only this branch and rewrites the index, whatever the agent
 * did to HEAD and the index.
 */
async function commitAll(record: OpenRecord, request: MergeRequest): Promise<Tip> {
  const checkout = record.own;
  const { folder, disk, signal } = request;
  const tip = await tipOf(record, { folder, disk, signal });
  const work = { to: "commit the work of the agent", signal };
  const branch = `refs/heads/${record.branch}`;
  const author = authorOf(record);
  const args = ["commit-tree", tip.tree, "-p", tip.head, "-F", "-"];
  const input = `${messageOf(request)}\n`;
  const head = tip.uncommitted.length === 0 ? tip.head : (await git(checkout, args, { ...work, author, input })).trim();
  await git(checkout, ["update-ref", "--no-deref", branch, head], { ...work, author });
  const current = await gitCode(checkout, ["symbolic-ref", "--quiet", "HEAD"], { ...work, accept: [0, 1] });
  if (current.stdout.trim() !== branch) await git(checkout, ["symbolic-ref", "HEAD", branch], work);
  if (tip.uncommitted.length > 0) await renewIndex(record, { head, request });
  return { head, tree: tip.tree, uncommitted: [] };
}

function authorOf({ gitUser }: OpenRecord): Identity {
  return gitUser.identity ?? { name: NOBODY.name, email: NOBODY.email };
}

function messageOf({ taskId, description = "" }: MergeRequest): string {
  const [first = ""] = description.trim().split("\n");
  return `${clip(first, 72) || `Work of agent ${taskId}`}\n\nTask: ${taskId}`;
}

async function renewIndex(
  record: OpenRecord,
  { head, request }: { head: string; request: MergeRequest },
): Promise<void> {
  const { folder, disk, signal } = request;
  const indexFile = join(stateFolder(folder, record.taskId), `${systemStamp.id("commit")}.index`);
  const work = { to: "write the index of the worktree", indexFile, signal };
  try {
    await git(record.own, ["read-tree", head], work);
    await replaceFile(disk, join(record.gitDir, "index"), await readFile(indexFile));
  } finally {
    await disk.remove(indexFile);
  }
}

async function bring(record: OpenRecord, what: { request: MergeRequest; tip: Tip }): Promise<MergeResult> {
  if ((what.request.as ?? "files") !== "files") return bringOnto("commit", record, what);
  return withOwnObjects(record, what.request, (own) => bringOnto("files", own, what));
}

async function bringOnto(
  onto: "files" | "commit",
  record: OpenRecord,
  { request, tip }: { request: MergeRequest; tip: Tip },
): Promise<MergeResult> {
  const { folder, disk, as = "files", signal } = request;
  const branch = onto === "files" ? undefined : await branchOf(record);
  const plan = await planMerge(record, { folder, disk, signal, tip, onto });
  const tree = { workTree: record.main.workTree, stateRoot: request.stateRoot };
  const named = protectedNames([...plan.changes, ...plan.conflicts], tree);
  if (!(await isPermitted(named, request))) return { kind: "protected", changes: named };
  if (plan.conflicts.length > 0) {
    return { kind: "conflict", conflicts: await writeConflicts(record, { stages: plan.conflicts, folder, disk }) };
  }
  if (plan.changes.length === 0) {
    if (plan.brought.length === 0) return { kind: "nothing" };
    await noteMerged(record, tip.head, { folder, disk });
    return { kind: "merged", files: [] };
  }
  if (plan.dirty.length > 0) return { kind: "dirty", files: plan.dirty };
  refuseSubmodules(plan);
  refuseMalformed(plan.changes);
  const { files, inTheWay } = await stage(record, { changes: plan.changes, ports: { folder, disk } });
  const leading = protectedTargets(files.flatMap(linkOf), tree);
  if (!(await isPermitted(leading, request))) return { kind: "protected", changes: leading };
  if (inTheWay.length > 0) return { kind: "dirty", files: inTheWay };
  const commit = branch && { branch, from: plan.head, to: await commitFor(record, { as, plan, tip, request }) };
  signal?.throwIfAborted();
  const { gitDir, workTree } = record.main;
  const journal: MergeJournal = {
    version: 1,
    direction: "forward",
    gitDir,
    workTree,
    merged: tip.head,
    files,
    ...(commit && { commit }),
  };
  const applied = await apply(record, journal, { folder, disk });
  if (applied.kind === "applied") await noteMerged(record, tip.head, { folder, disk });
  await forgetMerge(record, { folder, disk });
  if (applied.kind === "taken-back") return applied;
  return { kind: "merged", files: files.map(({ path }) => path), ...(commit && { commit: commit.to }) };
}

async function isPermitted(changes: readonly ProtectedChange[], { permit }: MergeRequest): Promise<boolean> {
  return changes.length === 0 || (await permit?.(changes)) === true;
}

function linkOf({ path, after }: MergeJournal["files"][number]): { path: string; target: string }[] {
  return after.kind === "link" ? [{ path, target: after.target }] : [];
}

async function branchOf({ main, includesUncommitted }: WorktreeRecord): Promise<string> {
  if (includesUncommitted) {
    throw new TroupeError("usage", "This worktree started from uncommitted changes, which a commit would include.", {
      hint: "Merge it as files, then commit what you want.",
    });
  }
  const name = await gitCode(main, ["symbolic-ref", "--quiet", "HEAD"], { to: "find the branch", accept: [0, 1] });
  if (name.code === 0) return name.stdout.trim();
  throw new TroupeError("usage", "The main tree has no branch checked out, so nothing can be committed there.", {
    hint: "Switch to a branch, or merge as files.",
  });
}

function refuseSubmodules({ changes }: MergePlan): void {
  const found = changes.find(({ before, after }) => before.mode === GITLINK || after.mode === GITLINK);
  if (!found) return;
  throw new TroupeError("failed", `The work changes a nested repository, ${found.path}.`, {
    hint: "Remove that change from the worktree, or merge the branch with git itself.",
  });
}

async function commitFor(
  record: OpenRecord,
  { as, plan, tip, request }: { as: MergeKind; plan: MergePlan; tip: Tip; request: MergeRequest },
): Promise<string> {
  const filtered = await filteredPaths(record.main, plan.brought, request.signal);
  if (filtered.length > 0) {
    throw new TroupeError("failed", `${filtered[0]} is managed by a filter such as Git LFS, which did not run.`, {
      hint: "Merge as files, then commit them with your own git.",
    });
  }
  const work = { to: "commit the merge", signal: request.signal };
  if (as === "merge" && plan.base === plan.head && record.merged === undefined) return tip.head;
  const parents = as === "merge" ? [plan.head, tip.head] : [plan.head];
  const args = ["commit-tree", plan.merged, ...parents.flatMap((parent) => ["-p", parent]), "-F", "-"];
  const author = authorOf(record);
  return (await git(record.main, args, { ...work, author, input: `${messageOf(request)}\n` })).trim();
}
