/**
 * The files of a rewind. What is there now is kept and the whole plan is on disk before the event that makes the rewind
 * so; then the files follow. Cut off in between, whoever opens the session next takes the steps that are missing. And
 * since a rewind is a change like any other, it can be taken back like any other.
 */

import type { Entry } from "../../checkpoints/checkpoint-schema.ts";
import { entryAt, sameEntry } from "../../checkpoints/checkpoint-tree.ts";
import type { Checkpoints, KeptChange } from "../../checkpoints/checkpoints.ts";
import type { FileHistory } from "../../checkpoints/file-history.ts";
import { contentAt, type PathStep, planSteps, takeSteps } from "../../checkpoints/restore-steps.ts";
import type { SessionEvent } from "../../protocol/event.ts";

interface SkippedFile {
  readonly path: string;
  /** Somebody has changed it since, or what it was is not known. */
  readonly reason: "user-modified" | "skipped-capture";
}

export interface FilePlan {
  readonly steps: readonly PathStep[];
  readonly skipped: readonly SkippedFile[];
  /** Made for the files, by path. */
  readonly folders: ReadonlyMap<string, readonly string[]>;
}

const NAME = "rewind:";

/** What it takes to have all files as they were before the first of these changes; those of others are left alone. */
export async function planFiles(changes: readonly KeptChange[]): Promise<FilePlan> {
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

/** All of it is on disk when this resolves, and nothing has been changed. Returns the name it goes by. */
export async function keepPlan(
  plan: FilePlan,
  { checkpoints }: FileHistory,
  rewindId: string,
): Promise<{ readonly name: string; readonly plan: FilePlan }> {
  const name = `${NAME}${rewindId}`;
  const steps: PathStep[] = [];
  const skipped = [...plan.skipped];
  for (const step of plan.steps) {
    const { path, goal } = step;
    const now = await kept(step, checkpoints);
    // What cannot be kept cannot be given back either, so it stays.
    if (now === undefined || !(await isThere(goal, checkpoints))) skipped.push({ path, reason: "skipped-capture" });
    else steps.push({ ...step, now });
  }
  const changes = steps.map(({ path, now, goal }) => {
    return { path, before: now, after: goal, folders: plan.folders.get(path) ?? [] };
  });
  if (changes.length > 0) await checkpoints.keepPlanned(name, changes);
  return { name, plan: { ...plan, steps, skipped } };
}

export async function followPlan({ steps, folders }: FilePlan, { checkpoints, disk }: FileHistory, name: string) {
  await takeSteps(steps, { checkpoints, disk, folders: [...folders.values()] });
  await checkpoints.noteMade(name);
}

/** Takes the steps that are missing of rewinds that were cut off. Returns the files that somebody changed meanwhile. */
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

/** The changes since a message was sent: the first that was made while it or a later one was answered, and all after. */
export function changesSince(changes: readonly KeptChange[], turns: ReadonlySet<string>): KeptChange[] {
  const first = changes.find(({ turn }) => turns.has(turn));
  return first ? changes.filter(({ seq }) => seq >= first.seq) : [];
}

/** Those that a rewind made. */
export const changesOf = (changes: readonly KeptChange[], name: string): KeptChange[] =>
  changes.filter(({ turn }) => turn === name);

async function kept({ path, now }: PathStep, checkpoints: Checkpoints): Promise<Entry | undefined> {
  if (now.kind !== "file") return now;
  const content = await contentAt(path).catch(() => undefined);
  return content && (await checkpoints.keepObject(content)) === now.hash ? now : undefined;
}

async function isThere(goal: Entry, checkpoints: Checkpoints): Promise<boolean> {
  if (goal.kind !== "file") return true;
  return checkpoints.object(goal.hash).then(
    () => true,
    () => false,
  );
}
