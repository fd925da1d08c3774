/**
 * Plans a merge without changing either tree. Git merges three trees into a fourth: the worktree's start, the main tree
 * and the worktree as they are now.
 */
import { join } from "node:path";
import type { GitCheckout } from "../lib/node/git-write.ts";
import { systemStamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import { git, gitCode, NOBODY } from "./worktree-git.ts";
import { type OpenRecord, stateFolder, type WorktreeRecord } from "./worktree-records.ts";
import { changesIn, secretPaths, snapshotTree } from "./worktree-snapshot.ts";
import type { Tip, WorktreeQuestion } from "./worktree-state.ts";

/** One path in two trees. Mode 000000 means that it is missing there. */
export interface TreeChange {
  readonly path: string;
  readonly before: { readonly mode: string; readonly id: string };
  readonly after: { readonly mode: string; readonly id: string };
}

/** One version of a path that could not be merged. */
export interface ConflictStage {
  readonly path: string;
  readonly side: "start" | "main" | "task";
  readonly mode: string;
  readonly id: string;
}

export interface MergePlan {
  readonly base: string;
  /** HEAD of the main tree. */
  readonly head: string;
  readonly merged: string;
  /** Changes from the main tree to the merged one. */
  readonly changes: readonly TreeChange[];
  /** Paths that the worktree changed. */
  readonly brought: readonly string[];
  readonly conflicts: readonly ConflictStage[];
  readonly dirty: readonly string[];
}

const MAX_FILES = 5_000;
export const MISSING = "000000";

export interface PlanRequest extends WorktreeQuestion {
  readonly tip: Tip;
  /** Merges with the current files, which requires `withOwnObjects`, or with the last commit. */
  readonly onto: "files" | "commit";
}

export async function planMerge(record: OpenRecord, request: PlanRequest): Promise<MergePlan> {
  const { main } = record;
  const { tip, onto, signal } = request;
  const head = (await git(main, ["rev-parse", "--verify", "HEAD^{commit}"], { to: "find HEAD", signal })).trim();
  const base = await baseOf(record, { head, tip });
  const { excludesFile } = record.gitUser;
  const { paths, unmerged } = await changesIn(main, { excludesFile, signal });
  const uncommitted = [...paths, ...unmerged];
  const secret = secretPaths(main, uncommitted);
  const compared = uncommitted.filter((path) => !secret.has(path));
  const ours = onto === "commit" ? head : await filesTree(record, { head, paths: compared, request });
  const { merged, conflicts } = await mergeTrees(main, { base, ours, theirs: tip.tree, signal });
  const changes = requireFew(await treeChanges(main, ours, merged));
  const differing = new Set((await treeChanges(main, base, ours)).map(({ path }) => path));
  const touched = new Set([...changes.map(({ path }) => path), ...conflicts.map(({ path }) => path)]);
  const isLost = (path: string): boolean =>
    touched.has(path) && (onto === "commit" || differing.has(path) || secret.has(path));
  return {
    base,
    head,
    merged,
    changes,
    conflicts,
    brought: requireFew(await treeChanges(main, base, tip.tree)).map(({ path }) => path),
    dirty: [...uncommitted.filter(isLost), ...unmerged.filter((path) => !isLost(path))],
  };
}

/** Returns the merge base. Changes that the worktree merged from the main tree are not its own work. */
async function baseOf(
  { main, merged, base }: WorktreeRecord,
  { head, tip }: { head: string; tip: Tip },
): Promise<string> {
  const start = merged ?? base;
  const found = await gitCode(main, ["merge-base", head, tip.head], { to: "find the common start", accept: [0, 1] });
  const common = found.stdout.trim();
  if (found.code !== 0 || common === start) return start;
  const args = ["merge-base", "--is-ancestor", start, common];
  return (await gitCode(main, args, { to: "compare commits", accept: [0, 1] })).code === 0 ? common : start;
}

async function filesTree(
  { main, taskId }: WorktreeRecord,
  { head, paths, request }: { head: string; paths: readonly string[]; request: PlanRequest },
): Promise<string> {
  const { folder, disk, signal } = request;
  const indexFile = join(stateFolder(folder, taskId), `${systemStamp.id("main")}.index`);
  try {
    return await snapshotTree(main, { commit: head, paths, indexFile, signal });
  } finally {
    await disk.remove(indexFile);
  }
}

/** Merges trees through three temporary commits, because git merges commits, not trees. */
async function mergeTrees(
  checkout: GitCheckout,
  trees: { base: string; ours: string; theirs: string; signal: AbortSignal | undefined },
): Promise<{ merged: string; conflicts: ConflictStage[] }> {
  const { signal } = trees;
  const commit = async (tree: string, ...parents: string[]): Promise<string> => {
    const args = ["commit-tree", `${tree}^{tree}`, ...parents.flatMap((parent) => ["-p", parent]), "-m", "merge"];
    return (await git(checkout, args, { to: "merge", author: NOBODY, signal })).trim();
  };
  const base = await commit(trees.base);
  const ours = await commit(trees.ours, base);
  const theirs = await commit(trees.theirs, base);
  const args = ["merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs];
  const { stdout } = await gitCode(checkout, args, { to: "merge", accept: [0, 1], signal });
  const [merged = "", ...entries] = stdout.split("\0");
  return { merged: merged.trim(), conflicts: entries.flatMap(parseStage) };
}

const SIDES = { "1": "start", "2": "main", "3": "task" } as const;

function parseStage(entry: string): ConflictStage[] {
  const [, mode, id, stage, path] = /^(\d{6}) ([0-9a-f]+) ([123])\t(.+)$/s.exec(entry) ?? [];
  if (mode === undefined || id === undefined || path === undefined) return [];
  return [{ path, side: SIDES[stage as keyof typeof SIDES], mode, id }];
}

async function treeChanges(checkout: GitCheckout, from: string, to: string): Promise<TreeChange[]> {
  const args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", `${from}^{tree}`, `${to}^{tree}`];
  const parts = (await git(checkout, args, { to: "compare" })).split("\0");
  const changes: TreeChange[] = [];
  for (let index = 0; index + 1 < parts.length; index += 2) {
    const [from = "", to = "", fromId = "", toId = ""] = (parts[index] ?? "").replace(/^:/, "").split(" ");
    const path = parts[index + 1] ?? "";
    changes.push({ path, before: { mode: from, id: fromId }, after: { mode: to, id: toId } });
  }
  return changes;
}

function requireFew(changes: readonly TreeChange[]): readonly TreeChange[] {
  if (changes.length <= MAX_FILES) return changes;
  throw new TroupeError("limit", `More than ${MAX_FILES} files differ.`, {
    hint: "Merge the branch of the worktree with git itself.",
  });
}
