import { dirname } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import { PathError } from "../lib/node/paths.ts";
import { openAsIs, type Place, removeEmptyFolders, sweepTemporaries } from "../lib/node/paths-write.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Entry } from "./checkpoint-schema.ts";
import { entryAt, MAX_TREE_BYTES, sameEntry } from "./checkpoint-tree.ts";
import type { Checkpoints, KeptChange } from "./checkpoints.ts";

/** The last call that changed something, all calls of its turn, or everything from a call on. */
export type UndoTarget = { kind: "last" } | { kind: "turn" } | { kind: "back-to"; toolCallId: string };

export interface UndoReport {
  /** Paths that are as they were before. */
  readonly restored: readonly string[];
  /** Paths that others have changed since. Unless forced, nothing at all was restored then. */
  readonly conflicts: readonly string[];
  /** With force: where the content is kept that had to give way. */
  readonly savedAs: Readonly<Record<string, string>>;
  /** What commands have made since and is still there; it is left alone. */
  readonly left: readonly string[];
}

/**
 * Brings files back to what they were, byte for byte, mode included, and deletes what was created. Doing it again
 * after it was cut off ends the same. What somebody else has changed since is not touched without `force`.
 */
export async function undo(
  target: UndoTarget,
  { checkpoints, disk, force = false }: { checkpoints: Checkpoints; disk: Disk; force?: boolean },
): Promise<UndoReport> {
  const changes = chosen(await checkpoints.changes(), target);
  const steps: PathStep[] = [];
  for (const [path, own] of byPath(changes)) steps.push(await planPath(path, own));
  const work = steps.filter(({ isDone }) => !isDone);
  const conflicts = work.filter(({ isOurs }) => !isOurs).map(({ path }) => path);
  if (conflicts.length > 0 && !force) return { restored: [], conflicts, savedAs: {}, left: [] };

  const savedAs: Record<string, string> = {};
  for (const { path, isOurs } of work) if (!isOurs) await saveCurrent(path, { checkpoints, savedAs });
  const goals = new Map(work.map((step) => [step.path, step]));
  // What comes back, outermost first; what goes, innermost first.
  const paths = [...goals.keys()].sort();
  for (const path of [...paths].reverse()) await apply(goals.get(path), { phase: "remove", checkpoints, disk });
  for (const path of paths) await apply(goals.get(path), { phase: "bring back", checkpoints, disk });
  for (const { folders } of changes) await removeEmptyFolders(folders, { cwd: "/", roots: [], disk });
  for (const folder of new Set(paths.map((path) => dirname(path)))) await sweepTemporaries(folder, disk);
  const seqs = changes.map(({ seq }) => seq);
  const left = await stillThere(await checkpoints.createdBy(seqs), goals);
  await checkpoints.noteUndone(seqs);
  return { restored: paths, conflicts, savedAs, left };
}

async function stillThere(created: readonly string[], goals: ReadonlyMap<string, unknown>): Promise<string[]> {
  const left: string[] = [];
  for (const path of new Set(created)) {
    if (!goals.has(path) && (await entryAt(path)).kind !== "missing") left.push(path);
  }
  return left;
}

function chosen(changes: readonly KeptChange[], target: UndoTarget): KeptChange[] {
  const last = changes.at(-1);
  if (!last) throw new TroupeError("usage", "There is nothing to undo in this session.");
  switch (target.kind) {
    case "last":
      return changes.filter(({ toolCallId }) => toolCallId === last.toolCallId);
    case "turn":
      return changes.filter(({ turn }) => turn === last.turn);
    case "back-to": {
      const first = changes.find(({ toolCallId }) => toolCallId === target.toolCallId);
      if (first) return changes.filter(({ seq }) => seq >= first.seq);
      throw new TroupeError("usage", `No change of this session was made by call ${target.toolCallId}.`, {
        hint: "See `troupe undo --list`.",
      });
    }
  }
}

function byPath(changes: readonly KeptChange[]): Map<string, KeptChange[]> {
  const paths = new Map<string, KeptChange[]>();
  for (const change of changes) {
    const own = paths.get(change.path);
    if (own) own.push(change);
    else paths.set(change.path, [change]);
  }
  return paths;
}

interface PathStep {
  readonly path: string;
  readonly goal: Entry;
  readonly now: Entry;
  readonly isDone: boolean;
  /** What is there now was left by one of the changes, so nobody loses anything. */
  readonly isOurs: boolean;
}

async function planPath(path: string, changes: readonly KeptChange[]): Promise<PathStep> {
  const goal: Entry = changes[0]?.before ?? { kind: "missing" };
  const now = await entryAt(path);
  const isDone = sameEntry(now, goal);
  const known = changes.flatMap(({ before, after }) => (after ? [before, after] : [before]));
  const isOurs = now.kind === "missing" || known.some((entry) => sameEntry(ignoringMode(entry), now));
  return { path, goal, now, isDone, isOurs };
}

const ignoringMode = (entry: Entry): Entry => (entry.kind === "file" ? { ...entry, mode: -1 } : entry);

async function saveCurrent(
  path: string,
  { checkpoints, savedAs }: { checkpoints: Checkpoints; savedAs: Record<string, string> },
): Promise<void> {
  const place = await placeAt(path);
  try {
    if (!place.stat?.isFile()) return;
    savedAs[path] = await checkpoints.saveCopy(await place.read(MAX_TREE_BYTES));
  } finally {
    await place.close();
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
  const place = await placeAt(path, disk);
  try {
    if (phase === "remove") {
      if (place.stat) await place.remove();
    } else if (goal.kind === "folder") {
      await place.makeFolder(goal.mode);
    } else if (goal.kind === "link") await place.makeLink(goal.target);
    else if (goal.kind === "file") await place.write(await checkpoints.object(goal.hash), { mode: goal.mode });
  } catch (error) {
    cannotRestore(error);
  } finally {
    await place.close();
  }
}

/** Paths were kept without links in them; one that leads elsewhere now would change a stranger's file. */
async function placeAt(path: string, disk?: Disk): Promise<Place> {
  const place = await openAsIs(path, { cwd: "/", roots: [], ...(disk && { disk }) }).catch(cannotRestore);
  if (place.realPath === path) return place;
  await place.close();
  throw new TroupeError("failed", `${path} leads to ${place.realPath} now and was left alone.`, {
    hint: "A folder in it was replaced by a symbolic link. Put the folder back, then undo again.",
  });
}

function cannotRestore(error: unknown): never {
  if (!(error instanceof PathError)) throw error;
  throw new TroupeError("failed", error.message, { hint: "Mend that, then undo again: it goes on.", cause: error });
}
