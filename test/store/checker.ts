/**
 * Says what is wrong with a session, from nothing but the bytes of its log. It shares no code with the store, so a
 * mistake there cannot hide here.
 */
import { crc32 } from "node:zlib";

interface Parsed {
  id: string;
  parentId: string | null;
  type: string;
  data: Record<string, unknown>;
  ephemeral?: boolean;
  troupe?: { seq: number; prev: string; crc: string };
}

/** Empty when all is well. */
export function checkLog(bytes: Buffer): string[] {
  const text = bytes.toString("utf8");
  const found: string[] = [];
  if (text !== "" && !text.endsWith("\n")) found.push("the last line is torn");
  const events = text
    .split("\n")
    .slice(0, -1)
    .flatMap((line, index) => parse(line, index + 1, found));
  checkSequence(events, found);
  checkIdentity(events, found);
  checkTools(events, found);
  checkTurns(events, found);
  return found;
}

function parse(line: string, number: number, found: string[]): Parsed[] {
  try {
    const event = JSON.parse(line) as Parsed;
    const covered = line.slice(0, line.lastIndexOf(',"crc":"'));
    const crc = crc32(Buffer.from(covered)).toString(16).padStart(8, "0");
    if (event.troupe?.crc !== crc) found.push(`line ${number}: wrong checksum`);
    return [event];
  } catch {
    found.push(`line ${number}: not JSON`);
    return [];
  }
}

function checkSequence(events: readonly Parsed[], found: string[]): void {
  let seq = 0;
  let crc = "00000000";
  for (const { troupe } of events) {
    if (!troupe) continue;
    if (troupe.seq !== seq + 1) found.push(`record ${troupe.seq} follows ${seq}`);
    else if (troupe.prev !== crc) found.push(`record ${troupe.seq} does not name the one before it`);
    seq = troupe.seq;
    crc = troupe.crc;
  }
}

function checkIdentity(events: readonly Parsed[], found: string[]): void {
  const ids = new Set<string>();
  let previous: string | null = null;
  for (const event of events) {
    if (ids.has(event.id)) found.push(`event ${event.id} is there twice`);
    if (event.parentId !== previous) found.push(`event ${event.id} has the wrong parent`);
    if (event.ephemeral) found.push(`event ${event.id} should not be stored`);
    ids.add(event.id);
    previous = event.id;
  }
}

function checkTools(events: readonly Parsed[], found: string[]): void {
  const requested = new Set<unknown>();
  const started = new Set<unknown>();
  const completed = new Set<unknown>();
  for (const { type, data } of events) {
    const call = data.toolCallId;
    if (type === "assistant.message") {
      for (const request of (data.toolRequests ?? []) as { toolCallId: string }[]) requested.add(request.toolCallId);
    } else if (type === "tool.execution_start") {
      if (!requested.has(call)) found.push(`call ${call} was never asked for`);
      if (started.has(call)) found.push(`call ${call} started twice`);
      started.add(call);
    } else if (type === "tool.execution_complete") {
      if (!started.has(call)) found.push(`call ${call} ended without a start`);
      if (completed.has(call)) found.push(`call ${call} ended twice`);
      completed.add(call);
    }
  }
  for (const call of requested) if (!completed.has(call)) found.push(`call ${call} has no result`);
}

/** Between two messages of the user there is at most one way in which the work ended. */
function checkTurns(events: readonly Parsed[], found: string[]): void {
  let open: unknown;
  let outcomes = 0;
  for (const { type, data } of events) {
    if (type === "user.message") outcomes = 0;
    if (type === "assistant.turn_start") {
      if (open !== undefined) found.push(`turn ${data.turnId} begins inside turn ${open}`);
      open = data.turnId;
    }
    if (type === "assistant.turn_end") {
      if (open !== data.turnId) found.push(`turn ${data.turnId} ends without a beginning`);
      open = undefined;
    }
    if (["session.task_complete", "abort", "session.error", "troupe.limit_reached"].includes(type)) {
      outcomes++;
      if (outcomes > 1) found.push(`a second outcome: ${type}`);
    }
  }
  if (open !== undefined) found.push(`turn ${open} never ends`);
}
