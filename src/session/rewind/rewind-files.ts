/**
 * The files of a rewind.
 * The current contents and the complete plan are on disk before the event that commits the rewind; the files change
 * after it. If the process ends in between, the next opening of the session takes the missing steps. A rewind is
 * recorded like other changes, so it can be undone.
 */

import type { PathState } from "../../checkpoints/checkpoint-schema.ts";
import { entryAt, sameEntry } from "../../checkpoints/checkpoint-tree.ts";
import type { Checkpoints, StoredChange } from "../../checkpoints/checkpoints.ts";
import type { FileHistory } from "../../checkpoints/file-history.ts";
import { contentAt, type PathStep, planSteps, takeSteps } from "../../checkpoints/restore-steps.ts";
import type { SessionEvent } from "../../protocol/event.ts";

interface SkippedFile {
  readonly path: string;
  /** It was changed by others since, or its earlier content is unknown. */
  readonly reason: "user-modified" | "skipped-capture";
}

export interface FilePlan {
  readonly steps: readonly PathStep[];
  readonly skipped: readonly SkippedFile[];
  /** Folders created for the files, by path. */
  readonly folders: ReadonlyMap<string, readonly string[]>;
}

const NAME = "rewind:";

/**
 * Plans the steps that restore all files to their state before the first of these changes. Files changed by others are
 * skipped.
 */
export async function planFiles(changes: readonly StoredChange[]): Promise<FilePlan> {
  const all = (await planSteps(changes)).filter(({ isDone }) => !isDone);
  const skipped = all.filter(({ isOurs }) => !isOurs);
  const folders = new Map<string, readonly string[]>();
  for (const { path, folders: made } of changes) folders.set(path, [...(folders.get(path) ?? []), ...made]);
  return {
    steps: all.filter(({ isOurs }) => isOurs),
    skipped: skipped.map(({ path }): SkippedFile => ({ path, reason: "user-modified" })),
    folders,
  };
}

/** Stores the plan and returns its name. When it resolves, everything is on disk and no file has changed. */
export async function storePlan(
  plan: FilePlan,
  { checkpoints }: FileHistory,
  rewindId: string,
): Promise<{ readonly name: string; readonly plan: FilePlan }> {
  const name = `${NAME}${rewindId}`;
  const steps: PathStep[] = [];
  const skipped = [...plan.skipped];
  for (const step of plan.steps) {
    const { path, goal } = step;
    const now = await storeCurrent(step, checkpoints);
    // Content that cannot be stored could not be restored either, so the file is skipped.
    if (now === undefined || !(await isThere(goal, checkpoints))) skipped.push({ path, reason: "skipped-capture" });
    else steps.push({ ...step, now });
  }
  const changes = steps.map(({ path, now, goal }) => {
    return { path, before: now, after: goal, folders: plan.folders.get(path) ?? [] };
  });
  if (changes.length > 0) await checkpoints.storePlanned(name, changes);
  return { name, plan: { ...plan, steps, skipped } };
}

export async function followPlan({ steps, folders }: FilePlan, { checkpoints, disk }: FileHistory, name: string) {
  await takeSteps(steps, { checkpoints, disk, folders: [...folders.values()] });
  await checkpoints.noteMade(name);
}

/** Completes rewinds that were cut off. Returns the files that were changed by others meanwhile. */
export async function finishRewinds(events: readonly SessionEvent[], files: FileHistory): Promise<readonly string[]> {
  const names = events.flatMap((event) =>
    event.type === "troupe.rewound" && event.data.files !== undefined ? [event.data.files] : [],
  );
  const changed: string[] = [];
  for (const name of names) {
    if (!(await files.checkpoints.isMade(name))) changed.push(...(await finish(name, files)));
  }
  return changed;
}

async function finish(name: string, files: FileHistory): Promise<readonly string[]> {
  const planned = changesOf(await files.checkpoints.changes(), name);
  const steps: PathStep[] = [];
  const changed: string[] = [];
  for (const { path, before, after = before } of planned) {
    const now = await entryAt(path);
    if (sameEntry(now, after)) continue;
    if (sameEntry(now, before)) steps.push({ path, goal: after, now, isDone: false, isOurs: true });
    else changed.push(path);
  }
  const folders = new Map(planned.map((change) => [change.path, change.folders]));
  await followPlan({ steps, skipped: [], folders }, files, name);
  return changed;
}

/**
 * Returns the changes since a message was sent: the first one made while it or a later message was answered, and all
 * after it.
 */
export function changesSince(
  changes: readonly StoredChange[],
  { messageIds, calls, since }: RemovedPart,
): StoredChange[] {
  const isIn = ({ turn, toolCallId, time }: StoredChange): boolean =>
    messageIds.has(turn) || (time >= since && calls.has(toolCallId));
  const first = changes.find(isIn);
  return first ? changes.filter(({ seq }) => seq >= first.seq) : [];
}

/** The part of a log that a rewind removes, as file changes refer to it. */
export interface RemovedPart {
  /** Ids of messages to the main agent. */
  readonly messageIds: ReadonlySet<string>;
  /** Calls of all agents. Agents in the background change files also while the main agent answers no message. */
  readonly calls: ReadonlySet<string>;
  /** Time of the first event. */
  readonly since: string;
}

/** Returns the changes that a rewind made. */
export const changesOf = (changes: readonly StoredChange[], name: string): StoredChange[] =>
  changes.filter(({ turn }) => turn === name);

async function storeCurrent({ path, now }: PathStep, checkpoints: Checkpoints): Promise<PathState | undefined> {
  if (now.kind !== "file") return now;
  const content = await contentAt(path).catch(() => undefined);
  return content && (await checkpoints.storeObject(content)) === now.hash ? now : undefined;
}

async function isThere(goal: PathState, checkpoints: Checkpoints): Promise<boolean> {
  if (goal.kind !== "file") return true;
  return checkpoints.object(goal.hash).then(
    () => true,
    () => false,
  );
}
