/**
 * The `Store` on disk. Sessions are plain files:
 *
 *   <root>/session-state/<id>/events.jsonl     the log, the source of truth
 *                             lock             identifies the writing process
 *                             workspace.yaml   the summary for session lists
 *                             snapshot.json    the condensed beginning of a long log
 *                             records/         assets by hash, large outputs by number, logs of commands
 *                             files/           files written by agents and their commands, with plan.md; never trusted
 *                             damaged/         bytes cut off a torn log, by position
 *                             session.db, checkpoints/   written by other folders of src
 *
 * Folders have mode 0700, files 0600.
 */

import { readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { defined } from "../lib/defined.ts";
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import { inUse } from "../protocol/errors.ts";
import { logPaths } from "./access.ts";
import { takeLock } from "./lock.ts";
import { createLog, openLog } from "./log/jsonl-log.ts";
import { LogPages } from "./log/log-pages.ts";
import { readLog } from "./log/read-log.ts";
import { visibleEvents } from "./log/rewound.ts";
import type { SnapshotRules } from "./log/snapshot.ts";
import type { WriterOptions } from "./log/writer.ts";
import { alreadyThere, checkSessionId, isSessionId, noSuchSession } from "./session-id.ts";
import { type FoundLog, SESSION_LIST_FILE, SessionList } from "./session-list.ts";
import { errorCode, failTo, storageError } from "./storage-error.ts";
import type { ExactLines, Store } from "./store.ts";

export interface JsonlStoreOptions {
  readonly root: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  /** The process id in locks (default: this process). */
  readonly pid?: number;
  readonly limits?: WriterOptions["limits"];
  /** Without rules, opening a session reads its whole log. */
  readonly snapshots?: SnapshotRules;
}

export function jsonlStore(options: JsonlStoreOptions): Store {
  const folder = join(options.root, "session-state");
  const context = { ...options, pid: options.pid ?? process.pid };
  const summaries = new SessionList({ path: join(options.root, SESSION_LIST_FILE), folder, disk: options.disk });
  const pathsOf = (sessionId: string) => logPaths(folder, checkSessionId(sessionId));
  /** Returns the path of an existing log. Throws when there is no such session. */
  const requireLog = (sessionId: string): string => {
    const { log } = pathsOf(sessionId);
    if (!findLog(log)) throw noSuchSession(sessionId);
    return log;
  };

  return {
    ...readersOf(requireLog),

    async create(sessionId) {
      const paths = pathsOf(sessionId);
      if (findLog(paths.log)) throw alreadyThere(sessionId);
      return createLog({ ...context, ...paths, sessionId, token: crypto.randomUUID() });
    },

    async open(sessionId) {
      requireLog(sessionId);
      return await openLog({ ...context, ...pathsOf(sessionId), sessionId, token: crypto.randomUUID() });
    },

    async revision(sessionId) {
      const found = findLog(pathsOf(sessionId).log);
      return found && revisionOf(found);
    },

    async revisions() {
      const own = allLogs(folder).filter(({ found }) => isOwn(found));
      return own.map(({ sessionId, found }) => ({ sessionId, revision: revisionOf(found), changedMs: found.mtimeMs }));
    },

    list: () => summaries.summaries(newestFirst(folder)),

    async ids() {
      return newestFirst(folder).map(({ sessionId }) => sessionId);
    },

    async fork(sessionId, fork) {
      requireLog(sessionId);
      if (statSync(pathsOf(fork.sessionId).directory, { throwIfNoEntry: false })) throw alreadyThere(fork.sessionId);
      const { forkFolder } = await import("./fork-folder.ts");
      const { disk, snapshots } = context;
      await forkFolder({ disk, folder, from: sessionId, fork, ...defined({ snapshots }) }).catch(
        failTo("fork the session"),
      );
    },

    remove: async (sessionId) => removeSession({ ...context, folder, sessionId }),
    exact: exactOf({ folder, disk: options.disk }, requireLog),
  };
}

/** Loads the code when it is used. */
function exactOf(
  { folder, disk }: { readonly folder: string; readonly disk: Disk },
  requireLog: (sessionId: string) => string,
): ExactLines {
  const load = async () => (await import("./log/exact-lines.ts")).fileLines(folder, disk);
  return {
    async *read(sessionId) {
      requireLog(sessionId);
      yield* (await load()).read(sessionId);
    },
    add: async (sessionId, lines) => (await load()).add(sessionId, lines),
  };
}

type Readers = Pick<Store, "read" | "events" | "recent" | "scan">;

/** Returns the methods that read a log without opening it for writing. */
function readersOf(requireLog: (sessionId: string) => string): Readers {
  return {
    async read(sessionId) {
      const { events, damage } = await readLog(requireLog(sessionId)).catch(failTo("read the session log"));
      return { ...visibleEvents(events), damage };
    },

    async *events(sessionId, onDamage) {
      const log = requireLog(sessionId);
      try {
        yield* LogPages.events(log, onDamage);
      } catch (error) {
        throw storageError("read the session log", error);
      }
    },

    async recent(sessionId, isStart) {
      const log = requireLog(sessionId);
      const { readRecent } = await import("./recent.ts");
      return readRecent(log, isStart).catch(failTo("read the session log"));
    },

    async scan(sessionId, what) {
      const log = requireLog(sessionId);
      const { IrregularLog, scanEvents, scanLog } = await import("./log-scan.ts");
      try {
        return await scanLog(log, what);
      } catch (error) {
        if (!(error instanceof IrregularLog)) throw storageError("read the session log", error);
        return await scanEvents(LogPages.events(log), what).catch(failTo("read the session log"));
      }
    },
  };
}

interface Removal {
  readonly folder: string;
  readonly sessionId: string;
  readonly disk: Disk;
  readonly pid: number;
}

/** Deletes a session's folder. Throws when there is none or a process is writing the session. */
async function removeSession({ folder, sessionId, disk, pid }: Removal): Promise<void> {
  const { directory } = logPaths(folder, checkSessionId(sessionId));
  if (!statSync(directory, { throwIfNoEntry: false })) throw noSuchSession(sessionId);
  const token = crypto.randomUUID();
  const lock = await takeLock({ disk, directory, pid, token }).catch(failTo("delete the session"));
  if (lock.kind === "held") throw inUse(sessionId, lock.by);
  // Renames the folder first, so that a partly deleted session is never listed.
  const doomed = join(folder, `.removed-${token}`);
  await disk.rename(directory, doomed).catch(failTo("delete the session"));
  await lock.release();
  await disk.remove(doomed).catch(failTo("delete the session"));
}

/**
 * Returns `undefined` for an empty log: a process that died before its first append leaves a folder without a session.
 */
function findLog(path: string): Stats | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found && found.size > 0 ? found : undefined;
  } catch (error) {
    throw storageError("look for the session log", error);
  }
}

const revisionOf = ({ size, mtimeMs }: Stats): string => `${size}-${mtimeMs}`;

/** Excludes other users' sessions in a shared root. */
function isOwn({ uid }: Stats): boolean {
  const own = process.geteuid?.();
  return own === undefined || uid === own;
}

function allLogs(folder: string): FoundLog[] {
  const all: FoundLog[] = [];
  for (const sessionId of listNames(folder)) {
    const found = isSessionId(sessionId) ? findLog(`${folder}/${sessionId}/events.jsonl`) : undefined;
    if (found) all.push({ sessionId, found });
  }
  return all;
}

function newestFirst(folder: string): FoundLog[] {
  return allLogs(folder).sort((a, b) => b.found.mtimeMs - a.found.mtimeMs || (a.sessionId < b.sessionId ? -1 : 1));
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw storageError("list the sessions", error);
  }
}
