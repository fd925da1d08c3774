/** Points to which a conversation can be rewound, and the effects on files. */

import type { PathState } from "../../checkpoints/checkpoint-schema.ts";
import type { StoredChange } from "../../checkpoints/checkpoints.ts";
import type { FileHistory } from "../../checkpoints/file-history.ts";
import { type LineChanges, StoredTexts } from "../../checkpoints/stored-texts.ts";
import type { EventOf, SessionEvent } from "../../protocol/event.ts";
import { isAsked } from "../../protocol/message.ts";
import { changesSince, planFiles, type RemovedPart } from "./rewind-files.ts";

/** A message in the user's role. Rewinding to it removes it and everything after it. */
export interface RewindPoint {
  readonly eventId: string;
  readonly userMessage: string;
  readonly timestamp: string;
  readonly canRestoreFiles: boolean;
  /** The number of files that would be restored. */
  readonly fileCount: number;
  /** Whether the answer to this message changed files, and by how many lines. */
  readonly turnChangedFiles: boolean;
  readonly linesAdded: number;
  readonly linesRemoved: number;
  readonly isAutopilotContinuation: boolean;
}

export interface RewindPreview {
  /** The changes to each file that would be undone. */
  readonly files: readonly RewindFile[];
  /** Files changed by others since, which are skipped. */
  readonly skipped: readonly string[];
  readonly eventsRemoved: number;
}

interface RewindFile {
  readonly path: string;
  readonly changeType: "created" | "deleted" | "modified";
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

/** Sources of further messages that start an answer. */
const ROOTS = new Set<string | undefined>(["schedule", "autopilot"]);

export function isRoot(event: SessionEvent): event is EventOf<"user.message"> {
  return (
    event.type === "user.message" &&
    event.agentId === undefined &&
    (isAsked(event.data.source) || ROOTS.has(event.data.source))
  );
}

/** Returns the points, oldest first. */
export async function rewindPoints(
  events: readonly SessionEvent[],
  files: FileHistory | undefined,
): Promise<readonly RewindPoint[]> {
  const changes = (await files?.checkpoints.changes()) ?? [];
  const texts = files && new StoredTexts(files.checkpoints);
  const points: RewindPoint[] = [];
  const messageIds = new Set<string>();
  const calls = new Set<string>();
  for (const event of [...events].reverse()) {
    noteIds(event, messageIds, calls);
    if (!isRoot(event)) continue;
    const { id: eventId, timestamp, data } = event;
    const messageId = data.interactionId ?? "";
    const paths = new Set(changesSince(changes, { messageIds, calls, since: timestamp }).map(({ path }) => path));
    const own = changes.filter((change) => change.turn === messageId);
    const lines = texts ? await linesOf(own, texts) : { linesAdded: 0, linesRemoved: 0 };
    points.push({
      eventId,
      timestamp,
      userMessage: data.content,
      ...lines,
      canRestoreFiles: paths.size > 0,
      fileCount: paths.size,
      turnChangedFiles: own.length > 0,
      isAutopilotContinuation: data.source === "autopilot",
    });
  }
  return points.reverse();
}

/** Returns the effects of removing these events. */
export async function previewOf(
  removed: readonly SessionEvent[],
  files: FileHistory | undefined,
): Promise<RewindPreview> {
  const eventsRemoved = removed.length;
  if (!files) return { files: [], skipped: [], eventsRemoved };
  const plan = await planFiles(changesSince(await files.checkpoints.changes(), removedPart(removed)));
  const texts = new StoredTexts(files.checkpoints);
  const previews: RewindFile[] = [];
  for (const { path, goal, now } of plan.steps) {
    const lines = await texts.lines(goal, now, path);
    previews.push({ path, changeType: changeType(goal, now), ...lines });
  }
  return { files: previews, skipped: plan.skipped.map(({ path }) => path), eventsRemoved };
}

export function removedPart(events: readonly SessionEvent[]): RemovedPart {
  const messageIds = new Set<string>();
  const calls = new Set<string>();
  for (const event of events) noteIds(event, messageIds, calls);
  return { messageIds, calls, since: events[0]?.timestamp ?? "" };
}

function noteIds(event: SessionEvent, messageIds: Set<string>, calls: Set<string>): void {
  if (event.type === "tool.execution_start") calls.add(event.data.toolCallId);
  if (event.type !== "user.message" || event.agentId !== undefined) return;
  if (event.data.interactionId !== undefined) messageIds.add(event.data.interactionId);
}

function changeType(before: PathState, now: PathState): RewindFile["changeType"] {
  if (before.kind === "missing") return "created";
  return now.kind === "missing" ? "deleted" : "modified";
}

/** Sums up the line changes of one answer. */
async function linesOf(changes: readonly StoredChange[], texts: StoredTexts): Promise<LineChanges> {
  const sum = { linesAdded: 0, linesRemoved: 0 };
  const byPath = new Map<string, { before: PathState; after: PathState | undefined }>();
  for (const { path, before, after } of changes) {
    byPath.set(path, { before: byPath.get(path)?.before ?? before, after });
  }
  for (const [path, { before, after }] of byPath) {
    const { linesAdded, linesRemoved } = await texts.lines(before, after ?? before, path);
    sum.linesAdded += linesAdded;
    sum.linesRemoved += linesRemoved;
  }
  return sum;
}
