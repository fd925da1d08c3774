/**
 * Hands a session over between processes. One process at a time writes a session. A process that holds an idle session
 * for its clients releases it when another process requests it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import { type FolderWatch, watchFolder } from "../../lib/node/watch-folder.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { SessionLog, Store } from "../../store/store.ts";

const NAME = "asked-for";
const REFUSED = "no";
const LOOK_MS = 50;

export interface HandOver {
  /** Returns whether another process requests this session and was not refused yet. Cheap. */
  isAskedFor(log: Pick<SessionLog, "directory">): boolean;
  /** Calls back when a request may have changed. Returns undefined where the folder cannot be watched: look again. */
  watch(log: Pick<SessionLog, "directory">, onChange: () => void, onLost: () => void): FolderWatch | undefined;
  /** Refuses the request because the session is working. */
  refuse(log: Pick<SessionLog, "directory">): Promise<void>;
  /** Clears the request after the session was released. */
  answered(log: Pick<SessionLog, "directory">): Promise<void>;
}

export function handOver(disk: Disk): HandOver {
  return {
    isAskedFor: ({ directory }) => (requestIn(join(directory, NAME)) ?? REFUSED) !== REFUSED,
    watch: ({ directory }, onChange, onLost) =>
      watchFolder(
        directory,
        (name) => {
          if (name === NAME) onChange();
        },
        onLost,
      ),
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
    for (
      const end = stamp.monotonic() + patienceMs;
      log.heldBy && stamp.monotonic() < end && requestIn(path) !== REFUSED;
    ) {
      await log.close();
      await stamp.sleep(LOOK_MS);
      log = await store.open(sessionId);
    }
    return log;
  } finally {
    await disk.unlink(path).catch(() => undefined);
  }
}

/** Returns `undefined` when there is no request, for example because the holder released the session and removed it. */
function requestIn(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
