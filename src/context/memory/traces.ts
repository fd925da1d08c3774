/** Finds session logs that contain a fact's words, for a user who wants to delete them. */
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

export interface Traces {
  readonly sessions: readonly string[];
  /** False when the search hit its limit of time or sessions. */
  readonly isComplete: boolean;
}

const MAX_SESSIONS = 20_000;
const PIECE_BYTES = 1024 * 1024;

/** Searches the logs of all sessions, for at most `maxMs`. */
export async function tracesOf(words: string, stateRoot: string, maxMs = 10_000): Promise<Traces> {
  const folder = join(stateRoot, "session-state");
  const names = await readdir(folder).catch(() => []);
  const needles = [words, JSON.stringify(words).slice(1, -1), twice(words)].map((form) => Buffer.from(form));
  const end = performance.now() + maxMs;
  const sessions: string[] = [];
  for (const name of names.slice(0, MAX_SESSIONS)) {
    if (performance.now() > end) return { sessions, isComplete: false };
    if (await mentions(join(folder, name, "events.jsonl"), needles, end)) sessions.push(name);
  }
  return { sessions, isComplete: names.length <= MAX_SESSIONS };
}

/** Returns the words as encoded in a call's arguments, which are JSON inside JSON. */
const twice = (words: string): string => {
  const once = JSON.stringify(words).slice(1, -1);
  return JSON.stringify(once).slice(1, -1);
};

/** Searches a file with constant memory. Returns false for a missing file or a non-file. */
async function mentions(path: string, needles: readonly Buffer[], end: number): Promise<boolean> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return false;
  try {
    if (!(await file.stat()).isFile()) return false;
    const overlap = Math.max(...needles.map(({ length }) => length));
    const buffer = Buffer.alloc(PIECE_BYTES + overlap);
    let kept = 0;
    while (performance.now() < end) {
      const { bytesRead } = await file.read(buffer, kept, PIECE_BYTES, null);
      const filled = buffer.subarray(0, kept + bytesRead);
      if (needles.some((needle) => filled.includes(needle))) return true;
      if (bytesRead === 0) return false;
      kept = Math.min(overlap, filled.length);
      filled.copy(buffer, 0, filled.length - kept);
    }
    return true; // not known to be clean
  } finally {
    await file.close();
  }
}
