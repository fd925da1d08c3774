/**
 * How a session goes from one process to another. One process writes a session at a time; one that holds a session and does
 * nothing with it, because it serves clients, lets go of it when another process asks.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { SessionLog, Store } from "../../store/store.ts";

const NAME = "asked-for";
const REFUSED = "no";
const LOOK_MS = 50;

export interface HandOver {
  /** Whether another process wants this session. Cheap. */
  isAskedFor(log: Pick<SessionLog, "directory">): boolean;
  /** Says no: it is at work. */
  refuse(log: Pick<SessionLog, "directory">): Promise<void>;
  /** It was let go of. */
  answered(log: Pick<SessionLog, "directory">): Promise<void>;
}

export function handOver(disk: Disk): HandOver {
  return {
    isAskedFor: ({ directory }) => existsSync(join(directory, NAME)),
    refuse: ({ directory }) => replaceFile(disk, join(directory, NAME), REFUSED).catch(() => undefined),
    answered: ({ directory }) => disk.unlink(join(directory, NAME)).catch(() => undefined),
  };
}

/** Opens the log for writing. While another process holds it, that one is asked for it, for so long. */
export async function openInTurn(
  sessionId: string,
  patienceMs: number,
  parts: { store: Store; disk: Disk; stamp: Stamp },
): Promise<SessionLog> {
  const { store, disk, stamp } = parts;
  let log = await store.open(sessionId);
  if (!log.heldBy || patienceMs <= 0) return log;
  const path = join(log.directory, NAME);
  await replaceFile(disk, path, "");
  try {
    for (const end = stamp.monotonic() + patienceMs; log.heldBy && stamp.monotonic() < end && !isRefused(path); ) {
      await log.close();
      await stamp.sleep(LOOK_MS);
      log = await store.open(sessionId);
    }
    return log;
  } finally {
    await disk.unlink(path).catch(() => undefined);
  }
}

function isRefused(path: string): boolean {
  try {
    return readFileSync(path, "utf8") === REFUSED;
  } catch {
    return false; // it was let go of, and our note with it
  }
}
