/** Plans and applies the steps that restore paths to an earlier state. */

import { dirname } from "node:path";
import { defined } from "../lib/defined.ts";
import type { Disk } from "../lib/node/disk.ts";
import { PathError } from "../lib/node/paths.ts";
import { openAsIs, removeEmptyFolders, type WriteTarget } from "../lib/node/paths-write.ts";
import { sweepTemporaries } from "../lib/node/temporaries.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { PathState } from "./checkpoint-schema.ts";
import { entryAt, MAX_TREE_BYTES, sameEntry } from "./checkpoint-tree.ts";
import type { Checkpoints, StoredChange } from "./checkpoints.ts";

export interface PathStep {
  readonly path: string;
  readonly goal: PathState;
  readonly now: PathState;
  readonly isDone: boolean;
  /** The current content was left by one of the changes, so restoring loses no other work. */
  readonly isOurs: boolean;
}

/** Returns the steps that restore the state before the first of these changes. */
export async function planSteps(changes: readonly StoredChange[]): Promise<PathStep[]> {
  const steps: PathStep[] = [];
  for (const [path, own] of byPath(changes)) steps.push(await planPath(path, own));
  return steps;
}

/** Applies the steps. Idempotent: it can be repeated after an interruption. */
export async function takeSteps(
  steps: readonly PathStep[],
  { checkpoints, disk, folders }: { checkpoints: Checkpoints; disk: Disk; folders: readonly (readonly string[])[] },
): Promise<void> {
  const goals = new Map(steps.map((step) => [step.path, step]));
  // Remove innermost paths first; restore outermost paths first.
  const paths = [...goals.keys()].sort();
  for (const path of [...paths].reverse()) await apply(goals.get(path), { phase: "remove", checkpoints, disk });
  for (const path of paths) await apply(goals.get(path), { phase: "bring back", checkpoints, disk });
  for (const made of folders) await removeEmptyFolders(made, { cwd: "/", roots: [], disk });
  for (const folder of new Set(paths.map((path) => dirname(path)))) await sweepTemporaries(folder, disk);
}

function byPath(changes: readonly StoredChange[]): Map<string, StoredChange[]> {
  const paths = new Map<string, StoredChange[]>();
  for (const change of changes) {
    const own = paths.get(change.path);
    if (own) own.push(change);
    else paths.set(change.path, [change]);
  }
  return paths;
}

async function planPath(path: string, changes: readonly StoredChange[]): Promise<PathStep> {
  const goal: PathState = changes[0]?.before ?? { kind: "missing" };
  const now = await entryAt(path);
  const isDone = sameEntry(now, goal);
  const known = changes.flatMap(({ before, after }) => (after ? [before, after] : [before]));
  const isOurs = now.kind === "missing" || known.some((entry) => sameEntry(ignoringMode(entry), now));
  return { path, goal, now, isDone, isOurs };
}

const ignoringMode = (entry: PathState): PathState => (entry.kind === "file" ? { ...entry, mode: -1 } : entry);

/** Returns the content of the file, or undefined if there is none. */
export async function contentAt(path: string): Promise<Buffer | undefined> {
  const target = await targetAt(path);
  try {
    return target.stat?.isFile() ? await target.read(MAX_TREE_BYTES) : undefined;
  } finally {
    await target.close();
  }
}

async function apply(
  step: PathStep | undefined,
  { phase, checkpoints, disk }: { phase: "remove" | "bring back"; checkpoints: Checkpoints; disk: Disk },
): Promise<void> {
  if (!step) return;
  const { path, goal, now } = step;
  const isReplaced = goal.kind === "missing" || goal.kind !== now.kind || goal.kind === "link";
  if (phase === "remove" && (now.kind === "missing" || !isReplaced)) return;
  if (phase === "bring back" && goal.kind === "missing") return;
  const target = await targetAt(path, disk);
  try {
    if (phase === "remove") {
      if (target.stat) await target.remove();
    } else if (goal.kind === "folder") {
      await target.makeFolder(goal.mode);
    } else if (goal.kind === "link") await target.makeLink(goal.target);
    else if (goal.kind === "file") await target.write(await checkpoints.object(goal.hash), { mode: goal.mode });
  } catch (error) {
    cannotRestore(error);
  } finally {
    await target.close();
  }
}

/**
 * Opens the path. Throws if it now leads through a link: stored paths have none, and writing would change another file.
 */
async function targetAt(path: string, disk?: Disk): Promise<WriteTarget> {
  const target = await openAsIs(path, { cwd: "/", roots: [], ...defined({ disk }) }).catch(cannotRestore);
  if (target.realPath === path) return target;
  await target.close();
  throw new TroupeError("failed", `${path} now leads to ${target.realPath} and was not changed.`, {
    hint: "A folder in it was replaced by a symbolic link. Put the folder back, then undo again.",
  });
}

function cannotRestore(error: unknown): never {
  if (!(error instanceof PathError)) throw error;
  throw new TroupeError("failed", error.message, {
    hint: "Fix the problem, then undo again: it continues where it stopped.",
    cause: error,
  });
}
