/** Reports an agent's work in its worktree, and how it would merge into the main tree. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import { type GitCheckout, GitFailure, gitAt } from "../lib/node/git-write.ts";
import { systemStamp } from "../lib/stamp.ts";
import { firstCharacters, sanitise } from "../lib/text.ts";
import { git, gitCode } from "./worktree-git.ts";
import { planMerge } from "./worktree-plan.ts";
import { type ProtectedChange, protectedNames } from "./worktree-protection.ts";
import {
  knownRecord,
  type OpenRecord,
  openRecord,
  stateFolder,
  type WorktreeRecord,
  withOwnObjects,
} from "./worktree-records.ts";
import { changesIn, snapshotTree } from "./worktree-snapshot.ts";

export interface WorktreeQuestion {
  readonly folder: string;
  readonly disk: Disk;
  readonly signal?: AbortSignal | undefined;
}

export interface WorktreeState {
  readonly branch: string;
  readonly root: string;
  /** Commits since the start, or since the last merge. */
  readonly ahead: number;
  /** Paths that are not committed in the worktree. */
  readonly uncommitted: readonly string[];
  /** Paths that a merge would change. */
  readonly files: readonly string[];
  /** Paths with merge conflicts. */
  readonly conflicts: readonly string[];
  /** Paths with uncommitted changes in the main tree that a merge would overwrite. */
  readonly dirty: readonly string[];
  /** Changes that a merge applies only if the user agrees. */
  readonly guarded: readonly ProtectedChange[];
  /** Diff for display; safe for a terminal. */
  readonly diff: string;
  readonly isDiffCut: boolean;
}

const MAX_DIFF_CHARACTERS = 200_000;

export async function worktreeState(
  request: WorktreeQuestion & {
    readonly taskId: string;
    readonly stateRoot: string;
    readonly maxDiffCharacters?: number;
  },
): Promise<WorktreeState> {
  const { folder, taskId, maxDiffCharacters = MAX_DIFF_CHARACTERS } = request;
  const record = await openRecord(await knownRecord(folder, taskId));
  const tip = await tipOf(record, request);
  const plan = await withOwnObjects(record, request, (own) => planMerge(own, { ...request, tip, onto: "files" }));
  const diff = await diffText(record.own, { from: plan.base, to: tip.tree, maxCharacters: maxDiffCharacters });
  return {
    branch: record.branch,
    root: record.root,
    ahead: await countCommits(record, [tip.head, `^${startOf(record)}`]),
    uncommitted: tip.uncommitted,
    files: plan.brought,
    conflicts: [...new Set(plan.conflicts.map(({ path }) => path))],
    dirty: plan.dirty,
    guarded: protectedNames([...plan.changes, ...plan.conflicts], {
      workTree: record.main.workTree,
      stateRoot: request.stateRoot,
    }),
    ...diff,
  };
}

/** The current state of the worktree. */
export interface Tip {
  /** The commit of its HEAD. */
  readonly head: string;
  /** The tree of its files on disk, committed or not. */
  readonly tree: string;
  readonly uncommitted: readonly string[];
}

export async function tipOf(record: OpenRecord, { folder, disk, signal }: WorktreeQuestion): Promise<Tip> {
  const checkout = record.own;
  const head = (await git(checkout, ["rev-parse", "--verify", "HEAD^{commit}"], { to: "find HEAD", signal })).trim();
  const { excludesFile } = record.gitUser;
  const { paths, unmerged } = await changesIn(checkout, { excludesFile, signal });
  const uncommitted = [...paths, ...unmerged];
  const indexFile = join(stateFolder(folder, record.taskId), `${systemStamp.id("tip")}.index`);
  try {
    return {
      head,
      uncommitted,
      tree: await snapshotTree(checkout, { commit: head, paths: uncommitted, indexFile, signal }),
    };
  } finally {
    await disk.remove(indexFile);
  }
}

/** Returns the last merged commit, or else the base: later commits are not in the main tree. */
const startOf = ({ merged, base }: WorktreeRecord): string => merged ?? base;

export interface UnmergedWork {
  readonly ahead: number;
  readonly files: readonly string[];
}

export async function unmergedWork(record: WorktreeRecord, question: WorktreeQuestion): Promise<UnmergedWork> {
  const start = startOf(record);
  const isThere = statSync(record.root, { throwIfNoEntry: false })?.isDirectory() === true;
  const isWhole = isThere && statSync(record.gitDir, { throwIfNoEntry: false }) !== undefined;
  if (!isWhole) return { ahead: await countCommits(record, [record.branch, `^${start}`]), files: [] };
  const opened = await openRecord(record);
  const tip = await tipOf(opened, question);
  const args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", start, tip.tree];
  const files = (await git(opened.own, args, { to: "compare" })).split("\0").filter((path) => path !== "");
  // Commits whose content is already merged are not a loss; commits on the branch that HEAD left behind are.
  const left = await countCommits(record, [record.branch, `^${tip.head}`, `^${start}`]);
  return { ahead: files.length > 0 ? await countCommits(record, [tip.head, `^${start}`]) : left, files };
}

/** Returns 0 if the branch is gone. */
async function countCommits({ common }: WorktreeRecord, revisions: readonly string[]): Promise<number> {
  const checkout: GitCheckout = { gitDir: common, workTree: common };
  try {
    return Number((await gitAt(checkout, ["rev-list", "--count", ...revisions, "--"])).stdout.trim());
  } catch (error) {
    if (error instanceof GitFailure && error.reason === "refused") return 0;
    throw error;
  }
}

async function diffText(
  checkout: GitCheckout,
  { from, to, maxCharacters }: { from: string; to: string; maxCharacters: number },
): Promise<{ diff: string; isDiffCut: boolean }> {
  const flags = ["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--submodule=short"];
  const args = ["diff-tree", "-r", "-M", "--stat", "-p", ...flags, from, to];
  const work = { maxBytes: 4 * maxCharacters, whenTooMuch: "cut" } as const;
  const { stdout, isCut = false } = await gitCode(checkout, args, { to: "compare", ...work });
  const text = sanitise(stdout);
  return { diff: firstCharacters(text, maxCharacters), isDiffCut: isCut || text.length > maxCharacters };
}
