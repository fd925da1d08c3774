/** Net changes of a session to a file: its state before the session's first change, and its current state. */
import type { EventData, SessionEvent } from "../protocol/event.ts";
import type { PathState } from "./checkpoint-schema.ts";
import { entryAt } from "./checkpoint-tree.ts";
import type { FileHistory } from "./file-history.ts";
import { planSteps } from "./restore-steps.ts";
import { StoredTexts } from "./stored-texts.ts";

export interface ChangedFile {
  readonly path: string;
  readonly before: PathState;
  readonly now: PathState;
}

/** Limit for the number of listed files. */
const MAX_FILES = 2_000;

/**
 * Returns files and links that differ from their state before the session, sorted by path. Files created by commands
 * are included only for commands that have a checkpoint.
 */
export async function changedFiles({ checkpoints }: Pick<FileHistory, "checkpoints">): Promise<readonly ChangedFile[]> {
  const changes = await checkpoints.changes();
  const steps = (await planSteps(changes)).filter(({ isDone }) => !isDone);
  const changed = new Map<string, ChangedFile>();
  for (const { path, goal: before, now } of steps) {
    if (isFile(before) && isFile(now)) changed.set(path, { path, before, now });
  }
  const known = new Set(changes.map(({ path }) => path));
  for (const path of await checkpoints.created()) {
    if (known.has(path) || changed.size >= MAX_FILES) continue;
    const now = await entryAt(path).catch(() => MISSING);
    if (now.kind !== "missing" && isFile(now)) changed.set(path, { path, before: MISSING, now });
  }
  return [...changed.values()].sort((one, other) => (one.path < other.path ? -1 : 1)).slice(0, MAX_FILES);
}

const MISSING: PathState = { kind: "missing" };
const isFile = ({ kind }: PathState): boolean => kind !== "folder";

/** Sums up the changed files and lines. Never rejects: returns zero counts when they cannot be computed. */
export async function codeChanges(
  files: Pick<FileHistory, "checkpoints"> | undefined,
  events: readonly SessionEvent[],
): Promise<EventData<"session.shutdown">["codeChanges"]> {
  const sums = { filesModified: [] as string[], linesAdded: 0, linesRemoved: 0 };
  if (!files || !events.some(({ type }) => type === "tool.execution_start")) return sums;
  const texts = new StoredTexts(files.checkpoints);
  for (const { path, before, now } of await changedFiles(files).catch(() => [])) {
    const lines = await texts.lines(before, now, path).catch(() => undefined);
    sums.filesModified.push(path);
    sums.linesAdded += lines?.linesAdded ?? 0;
    sums.linesRemoved += lines?.linesRemoved ?? 0;
  }
  return sums;
}
