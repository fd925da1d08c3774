/** What a session has done to files, all of it together: what was there before its first change, and what is there now. */
import type { EventData, SessionEvent } from "../protocol/event.ts";
import type { Entry } from "./checkpoint-schema.ts";
import { entryAt } from "./checkpoint-tree.ts";
import type { FileHistory } from "./file-history.ts";
import { KeptTexts } from "./kept-texts.ts";
import { planSteps } from "./restore-steps.ts";

export interface ChangedFile {
  readonly path: string;
  readonly before: Entry;
  readonly now: Entry;
}

/** More than a person would look at. */
const MAX_FILES = 2_000;

/**
 * Files and links that are not as the session found them, in order of their paths. What commands made counts where a
 * command could destroy something: of others nothing is kept.
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

const MISSING: Entry = { kind: "missing" };
const isFile = ({ kind }: Entry): boolean => kind !== "folder";

/** The sums of it. Never rejects: a count that cannot be made is none. */
export async function codeChanges(
  files: Pick<FileHistory, "checkpoints"> | undefined,
  events: readonly SessionEvent[],
): Promise<EventData<"session.shutdown">["codeChanges"]> {
  const sums = { filesModified: [] as string[], linesAdded: 0, linesRemoved: 0 };
  if (!files || !events.some(({ type }) => type === "tool.execution_start")) return sums;
  const texts = new KeptTexts(files.checkpoints);
  for (const { path, before, now } of await changedFiles(files).catch(() => [])) {
    const lines = await texts.lines(before, now, path).catch(() => undefined);
    sums.filesModified.push(path);
    sums.linesAdded += lines?.linesAdded ?? 0;
    sums.linesRemoved += lines?.linesRemoved ?? 0;
  }
  return sums;
}
