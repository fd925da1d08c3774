/** Reads the end of a log backwards, as far as the caller needs. */
import { type FileHandle, open } from "node:fs/promises";
import type { SessionEvent } from "../protocol/event.ts";
import { decodeLine, NEWLINE } from "./log/line.ts";

export interface RecentEvents {
  readonly events: readonly SessionEvent[];
  /** Number of events in the log before `events`. */
  readonly before: number;
}

/** Shorter logs are not read from their end. */
export const MIN_RECENT_LOG_BYTES = 16 * 1024 * 1024;
const FIRST_BYTES = 1024 * 1024;
export const MAX_RECENT_BYTES = 64 * 1024 * 1024;

/**
 * Returns the events from the last one for which `isStart` is true. Returns `undefined` when the log is short, has
 * damage or a rewind near its end, or has no such event there.
 */
export async function readRecent(
  path: string,
  isStart: (event: SessionEvent) => boolean,
  minLogBytes = MIN_RECENT_LOG_BYTES,
): Promise<RecentEvents | undefined> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    if (size < minLogBytes) return undefined;
    for (let length = FIRST_BYTES; length <= MAX_RECENT_BYTES; length *= 2) {
      const end = await readEnd(file, size, Math.min(length, size));
      const from = end?.events.findLastIndex(isStart) ?? -1;
      if (end && from !== -1) return { events: end.events.slice(from), before: end.before + from };
      if (!end || length >= size) return undefined;
    }
    return undefined;
  } finally {
    await file.close();
  }
}

async function readEnd(file: FileHandle, size: number, length: number): Promise<RecentEvents | undefined> {
  const bytes = Buffer.allocUnsafe(length);
  const { bytesRead } = await file.read(bytes, 0, length, size - length);
  if (bytesRead < length || bytes[length - 1] !== NEWLINE) return undefined;
  const events: SessionEvent[] = [];
  let before = 0;
  // The first line may be incomplete.
  for (let start = length === size ? 0 : bytes.indexOf(NEWLINE) + 1; start < length; ) {
    const end = bytes.indexOf(NEWLINE, start);
    const line = decodeLine(bytes, start, end);
    if (line.kind !== "record" || line.event.type === "troupe.rewound") return undefined;
    if (events.length === 0) before = line.seq - 1;
    if (line.seq !== before + events.length + 1) return undefined;
    events.push(line.event);
    start = end + 1;
  }
  return { events, before };
}
