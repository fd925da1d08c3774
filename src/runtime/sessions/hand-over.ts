/**
 * Hands a session over between processes. One process at a time writes a session. A process that holds an idle session
 * for its clients releases it when another process requests it.
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
  /** Returns whether another process requests this session. Cheap. */
  isAskedFor(log: Pick<SessionLog, "directory">): boolean;
  /** Refuses the request because the session is working. */
  refuse(log: Pick<SessionLog, "directory">): Promise<void>;
  /** Clears the request after the session was released. */
  answered(log: Pick<SessionLog, "directory">): Promise<void>;
}

export function handOver(disk: Disk): HandOver {
  return {
    isAskedFor: ({ directory }) => existsSync(join(directory, NAME)),
    refuse: ({ directory }) => replaceFile(disk, join(directory, NAME), REFUSED).catch(() => undefined),
    answered: ({ directory }) => disk.unlink(join(directory, NAME)).catch(() => undefined),
  };
}

/** Opens the log for writing. If another process holds it, requests it and waits for at most `patienceMs`. */
export async function openWhenReleased(
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
    return false; // the holder released the session and removed the request
  }
}
