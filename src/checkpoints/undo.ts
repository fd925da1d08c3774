import type { Disk } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";
import { entryAt } from "./checkpoint-tree.ts";
import type { Checkpoints, StoredChange } from "./checkpoints.ts";
import { contentAt, planSteps, takeSteps } from "./restore-steps.ts";

/** Changes to undo: those of the last call, those of the same message, or everything since a call. */
export type UndoTarget = { kind: "last" } | { kind: "message" } | { kind: "back-to"; toolCallId: string };

export interface UndoReport {
  /** Paths restored to their earlier state. */
  readonly restored: readonly string[];
  /** Paths that others have changed since. If there are any, nothing is restored without `force`. */
  readonly conflicts: readonly string[];
  /** With `force`: the saved copy of each replaced content, by path. */
  readonly savedAs: Readonly<Record<string, string>>;
  /** Existing paths that commands created since. Undo does not remove them. */
  readonly left: readonly string[];
}

/**
 * Restores files byte for byte, including their mode, and deletes created files. Idempotent: it can be repeated after
 * an interruption. Without `force`, it restores nothing if others have changed one of the files since.
 */
export async function undo(
  target: UndoTarget,
  { checkpoints, disk, force = false }: { checkpoints: Checkpoints; disk: Disk; force?: boolean },
): Promise<UndoReport> {
  const changes = changesOf(await checkpoints.changes(), target);
  const work = (await planSteps(changes)).filter(({ isDone }) => !isDone);
  const conflicts = work.filter(({ isOurs }) => !isOurs).map(({ path }) => path);
  if (conflicts.length > 0 && !force) return { restored: [], conflicts, savedAs: {}, left: [] };

  const savedAs: Record<string, string> = {};
  for (const path of conflicts) {
    const content = await contentAt(path);
    if (content) savedAs[path] = await checkpoints.saveCopy(content);
  }
  await takeSteps(work, { checkpoints, disk, folders: changes.map(({ folders }) => folders) });
  const seqs = changes.map(({ seq }) => seq);
  const restored = work.map(({ path }) => path).sort();
  const left = await stillThere(await checkpoints.createdBy(seqs), new Set(restored));
  await checkpoints.noteUndone(seqs);
  return { restored, conflicts, savedAs, left };
}

async function stillThere(created: readonly string[], restored: ReadonlySet<string>): Promise<string[]> {
  const left: string[] = [];
  for (const path of new Set(created)) {
    if (!restored.has(path) && (await entryAt(path)).kind !== "missing") left.push(path);
  }
  return left;
}

function changesOf(changes: readonly StoredChange[], target: UndoTarget): StoredChange[] {
  const last = changes.at(-1);
  if (!last) throw new TroupeError("usage", "There is nothing to undo in this session.");
  switch (target.kind) {
    case "last":
      // Some model servers use the same ids in each answer.
      return changes.filter(({ toolCallId, turn }) => toolCallId === last.toolCallId && turn === last.turn);
    case "message":
      return changes.filter(({ turn }) => turn === last.turn);
    case "back-to": {
      const first = changes.find(({ toolCallId }) => toolCallId === target.toolCallId);
      if (first) return changes.filter(({ seq }) => seq >= first.seq);
      throw new TroupeError("usage", `Call ${target.toolCallId} made no changes in this session.`, {
        hint: "See `troupe undo --list`.",
      });
    }
  }
}
