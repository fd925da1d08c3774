/** The `SessionLog` of a session on disk. This folder reads, writes and repairs `events.jsonl` and its snapshot. */

import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { replaceFile } from "../../lib/node/disk.ts";
import { REPLACEMENT } from "../../lib/node/temporaries.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { emptyLog, held, LogAccess, type LogContext, readIfThere } from "../access.ts";
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
      failure: held(context, heldBy),
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
  const { content } = loaded;
  const length = lengthAfterRepair(content);
  const write: typeof disk.write = async (fd, data) => {
    await access.requireLock();
    await disk.write(fd, data);
  };
  const writer = new LogWriter({
    disk: { ...disk, write },
    stamp: context.stamp,
    position: { length, synced: length, last: content.last, lastLine: 0, doubtful: false },
    failure: opened.failure,
    open: (expected) => access.open(expected),
    restore: (known) => restoreLog(disk, context.log, known),
    ...(context.limits && { limits: context.limits }),
  });

  const pages = new LogPages(context.log, { isClean: loaded.damage.length === 0 });
  let prefix = loaded.prefix;
  let snapshotting: Promise<unknown> = Promise.resolve();

  /**
   * Stores a snapshot. `now` must include everything appended so far. Snapshots are written one at a time, in order.
   */
  function keepSnapshot(now: Pick<Snapshot, "events" | "count">): Promise<boolean> {
    const { position } = writer;
    const { snapshots } = context;
    if (heldBy || !snapshots || !position || position.last.seq === 0) return Promise.resolve(false);
    if (position.length < minLogBytes(snapshots)) return Promise.resolve(false);
    const written = snapshotting.then(() => replaceSnapshot(now, position, snapshots.version));
    snapshotting = written.catch(() => undefined);
    return written;
  }

  async function replaceSnapshot(
    now: Pick<Snapshot, "events" | "count">,
    position: Position,
    rules: number,
  ): Promise<boolean> {
    const place = {
      offset: position.length,
      lines: content.lines + position.last.seq - content.last.seq,
      last: position.last,
      afterDamage: content.endsDamaged && position.last.seq === content.last.seq,
    };
    const snapshot = { events: now.events, removed: loaded.removed, count: now.count, damage: loaded.damage };
    const what = { snapshot, rules, place, ...(prefix && { before: prefix }) };
    const written = await writeSnapshot(disk, context, what);
    prefix = written ?? prefix;
    return written !== undefined;
  }

  /** Writes a file beside the log. Creates the folder and takes the lock first, because only the log's writer may. */
  async function beside<T>(action: string, write: () => Promise<T>): Promise<T> {
    if (heldBy) throw held(context, heldBy);
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
    snapshot: (now) => keepSnapshot(now).catch(() => false), // derived: a log opens without it
    damage: [...loaded.damage, ...opened.damage],
    heldBy,
    append: (event, { barrier }) => writer.append(event, barrier),
    flush: () => (heldBy ? Promise.resolve() : writer.flush()),
    recover: async () => {
      if (heldBy) throw held(context, heldBy);
      await writer.recover();
    },
    writeAsset: (data, extension) =>
      beside("keep a file", () => writeAsset(disk, context.records, { data, extension })),
    readAsset: (assetId) => readAsset(context, assetId),
    writeFile: (name, text) =>
      beside("keep a file", () => writeNumbered(disk, context.records, { name, content: text })),
    readFile: (path) => readNumbered(context, path),
    writeSummary: (summary) =>
      beside("write the summary", () => replaceFile(disk, context.summary, encodeSummary(summary))),
    async close() {
      try {
        await writer.close();
        await snapshotting;
      } finally {
        await access.leave();
      }
    },
  };
}

function lengthAfterRepair({ length, tail }: LogContent): number {
  const lacksNewline = tail.kind === "open" || (tail.kind === "torn" && tail.newline === "missing");
  return length + (lacksNewline ? 1 : 0);
}

const tailDamage = ({ tail }: LogContent): Damage[] => (tail.kind === "torn" ? [tail.damage] : []);
