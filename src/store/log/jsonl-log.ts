/** The `SessionLog` of a session on disk. This folder reads, writes and repairs `events.jsonl` and its snapshot. */

import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { replaceFile } from "../../lib/node/disk.ts";
import { REPLACEMENT } from "../../lib/node/temporaries.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { emptyLog, inUseError, LogAccess, type LogContext, readIfThere } from "../access.ts";
import { readAsset, readNumbered, writeAsset, writeNumbered } from "../assets.ts";
import type { Damage } from "../damage.ts";
import { type LockHolder, sweepLocks, takeLock } from "../lock.ts";
import { failTo, storageError } from "../storage-error.ts";
import type { SessionLog } from "../store.ts";
import { encodeSummary } from "../summary.ts";
import { type LoadedLog, loadLog } from "./load-log.ts";
import { LogPages } from "./log-pages.ts";
import type { LogContent } from "./read-log.ts";
import { type Position, restoreLog } from "./repair.ts";
import { minLogBytes, type Snapshot, writeSnapshot } from "./snapshot.ts";
import { LogWriter } from "./writer.ts";

/** Returns a new log. Writes nothing: the first append creates the folder and takes the lock. */
export function createLog(context: LogContext): SessionLog {
  const loaded = { content: emptyLog, events: [], removed: [], count: 0, damage: [], wantsSnapshot: false };
  return sessionLog(context, { loaded, access: new LogAccess(context, emptyLog), damage: [] });
}

/** Opens a log, which can then always be read. `heldBy` or the first append reports why it cannot be written. */
export async function openLog(context: LogContext): Promise<SessionLog> {
  const lock = await takeLock(context).catch((error: unknown) => storageError("lock the session", error));
  const loaded = await loadLog(context, context.snapshots).catch(async (error: unknown) => {
    if (!(lock instanceof TroupeError) && lock.kind === "taken") await lock.release().catch(() => undefined);
    throw storageError("read the session log", error);
  });
  const { content } = loaded;
  if (lock instanceof TroupeError) {
    return sessionLog(context, {
      loaded,
      access: new LogAccess(context, content),
      failure: lock,
      damage: tailDamage(content),
    });
  }
  if (lock.kind === "held") {
    const heldBy = lock.by;
    return sessionLog(context, {
      loaded,
      access: new LogAccess(context, content),
      failure: inUseError(context, heldBy),
      heldBy,
      damage: [],
    });
  }
  const opened = new LogAccess(context, content, lock);
  await sweep(context);
  try {
    const lost = await opened.repair();
    const log = sessionLog(context, { loaded, access: opened, damage: lost ? [lost] : [] });
    if (loaded.wantsSnapshot) await log.snapshot(loaded);
    return log;
  } catch (error) {
    const failure = storageError("repair the session log", error);
    return sessionLog(context, { loaded, access: opened, failure, damage: tailDamage(content) });
  }
}

/** Deletes files that killed processes left beside the log. */
async function sweep({ directory, summary, disk }: LogContext): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  await sweepLocks(directory, names, disk);
  const left = names.filter((name) => name.startsWith(basename(summary)) && REPLACEMENT.test(name));
  for (const name of left) await disk.unlink(join(directory, name)).catch(() => undefined);
}

interface Opened {
  readonly loaded: LoadedLog;
  readonly access: LogAccess;
  readonly failure?: TroupeError;
  readonly heldBy?: LockHolder;
  /** Damage at the end of the log; the rest is in `loaded`. */
  readonly damage: readonly Damage[];
}

function sessionLog(context: LogContext, opened: Opened): SessionLog {
  const { disk } = context;
  const { loaded, access, heldBy } = opened;
  const writer = writerOf(context, opened);
  const pages = new LogPages(context.log, { isClean: loaded.damage.length === 0 });
  const snapshots = snapshotQueue(context, loaded);

  /** Writes a file beside the log. Creates the folder and takes the lock first, because only the log's writer may. */
  async function beside<T>(action: string, write: () => Promise<T>): Promise<T> {
    if (heldBy) throw inUseError(context, heldBy);
    try {
      await access.enter();
      return await write();
    } catch (error) {
      throw storageError(action, error);
    }
  }

  return {
    sessionId: context.sessionId,
    directory: context.directory,
    events: loaded.events,
    removed: loaded.removed,
    count: loaded.count,
    async everything() {
      if (!heldBy) await writer.flush();
      return (await readIfThere(context.log).catch(failTo("read the session log"))).events;
    },
    page: (from, to) => pages.read(from, to).catch(failTo("read the session log")),
    async snapshot(now) {
      if (heldBy || !writer.position) return false;
      return snapshots.write(now, writer.position).catch(() => false); // derived: a log opens without it
    },
    damage: [...loaded.damage, ...opened.damage],
    heldBy,
    append: (event, { barrier }) => writer.append(event, barrier),
    flush: () => (heldBy ? Promise.resolve() : writer.flush()),
    repairAfterFailedWrite: async () => {
      if (heldBy) throw inUseError(context, heldBy);
      await writer.repairAfterFailedWrite();
    },
    writeAsset: (data, extension) =>
      beside("store a file", () => writeAsset(disk, context.records, { data, extension })),
    readAsset: (assetId) => readAsset(context, assetId),
    writeFile: (name, text) =>
      beside("store a file", () => writeNumbered(disk, context.records, { name, content: text })),
    readFile: (path) => readNumbered(context, path),
    writeSummary: (summary) =>
      beside("write the summary", () => replaceFile(disk, context.summary, encodeSummary(summary))),
    async close() {
      try {
        await writer.close();
        await snapshots.done();
      } finally {
        await access.leave();
      }
    },
  };
}

function writerOf(context: LogContext, { loaded: { content }, access, failure }: Opened): LogWriter {
  const { disk } = context;
  const length = lengthAfterRepair(content);
  const write: typeof disk.write = async (fd, data) => {
    await access.requireLock();
    await disk.write(fd, data);
  };
  return new LogWriter({
    disk: { ...disk, write },
    stamp: context.stamp,
    position: { length, synced: length, last: content.last, lastLine: 0, doubtful: false },
    failure,
    open: (expected) => access.open(expected),
    restore: (known) => restoreLog(disk, context.log, known),
    ...defined({ limits: context.limits }),
  });
}

interface SnapshotQueue {
  /** Stores a snapshot of the log up to `position`. Returns false if none is wanted or none could be stored. */
  write(now: Pick<Snapshot, "events" | "count">, position: Position): Promise<boolean>;
  /** Resolves when no snapshot is being written. */
  done(): Promise<unknown>;
}

/** Writes snapshots one at a time, in order. */
function snapshotQueue(context: LogContext, { content, removed, damage, prefix: first }: LoadedLog): SnapshotQueue {
  let prefix = first;
  let last: Promise<unknown> = Promise.resolve();

  async function replace(
    { events, count }: Pick<Snapshot, "events" | "count">,
    position: Position,
    rules: number,
  ): Promise<boolean> {
    const snapshotPosition = {
      offset: position.length,
      lines: content.lines + position.last.seq - content.last.seq,
      last: position.last,
      afterDamage: content.endsDamaged && position.last.seq === content.last.seq,
    };
    const snapshot = { events, removed, count, damage };
    const what = { snapshot, rules, position: snapshotPosition, ...defined({ before: prefix }) };
    const written = await writeSnapshot(context.disk, context, what);
    prefix = written ?? prefix;
    return written !== undefined;
  }

  return {
    async write(now, position) {
      const { snapshots } = context;
      if (!snapshots || position.last.seq === 0 || position.length < minLogBytes(snapshots)) return false;
      const written = last.then(() => replace(now, position, snapshots.version));
      last = written.catch(() => undefined);
      return written;
    },
    done: () => last,
  };
}

function lengthAfterRepair({ length, tail }: LogContent): number {
  const lacksNewline = tail.kind === "open" || (tail.kind === "torn" && tail.newline === "missing");
  return length + (lacksNewline ? 1 : 0);
}

const tailDamage = ({ tail }: LogContent): Damage[] => (tail.kind === "torn" ? [tail.damage] : []);
