import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { replaceFile } from "../lib/node/disk.ts";
import { REPLACEMENT } from "../lib/node/temporaries.ts";
import { TroupeError } from "../protocol/errors.ts";
import { emptyLog, held, LogAccess, type LogContext, readIfThere } from "./access.ts";
import { readAsset, readNumbered, writeAsset, writeNumbered } from "./assets.ts";
import { type LockHolder, sweepLocks, takeLock } from "./lock.ts";
import { type LogContent, readLog } from "./read-log.ts";
import { restoreLog } from "./repair.ts";
import { viewOf } from "./rewound.ts";
import { failTo, storageError } from "./storage-error.ts";
import type { Damage, SessionLog } from "./store.ts";
import { encodeSummary } from "./summary.ts";
import { LogWriter } from "./writer.ts";

/** Writes nothing yet: the first append makes the folder and takes the lock. */
export function createLog(context: LogContext): SessionLog {
  return sessionLog(context, { content: emptyLog, access: new LogAccess(context, emptyLog), damage: [] });
}

/** Opens for reading in any case; what keeps it from being written is told by `heldBy` or by the first append. */
export async function openLog(context: LogContext): Promise<SessionLog> {
  const lock = await takeLock(context).catch((error: unknown) => storageError("lock the session", error));
  const content = await readLog(context.log).catch(async (error: unknown) => {
    if (!(lock instanceof TroupeError) && lock.kind === "taken") await lock.release().catch(() => undefined);
    throw storageError("read the session log", error);
  });
  if (lock instanceof TroupeError) {
    return sessionLog(context, {
      content,
      access: new LogAccess(context, content),
      failure: lock,
      damage: tailDamage(content),
    });
  }
  if (lock.kind === "held") {
    const heldBy = lock.by;
    return sessionLog(context, {
      content,
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
    return sessionLog(context, { content, access: opened, damage: lost ? [lost] : [] });
  } catch (error) {
    const failure = storageError("repair the session log", error);
    return sessionLog(context, { content, access: opened, failure, damage: tailDamage(content) });
  }
}

/** Takes away what processes that were killed have left beside the log. */
async function sweep({ directory, summary, disk }: LogContext): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  await sweepLocks(directory, names, disk);
  const left = names.filter((name) => name.startsWith(basename(summary)) && REPLACEMENT.test(name));
  for (const name of left) await disk.unlink(join(directory, name)).catch(() => undefined);
}

interface Opened {
  readonly content: LogContent;
  readonly access: LogAccess;
  readonly failure?: TroupeError;
  readonly heldBy?: LockHolder;
  /** At the end of the log; the rest is in `content`. */
  readonly damage: readonly Damage[];
}

function sessionLog(context: LogContext, opened: Opened): SessionLog {
  const { disk } = context;
  const { content, access, heldBy } = opened;
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

  /** For what is kept beside the log: only the process that writes the log may, and the folder must be there. */
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
    ...viewOf(content.events),
    async everything() {
      if (!heldBy) await writer.flush();
      return (await readIfThere(context.log).catch(failTo("read the session log"))).events;
    },
    damage: [...content.damage, ...opened.damage],
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
