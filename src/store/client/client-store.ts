/**
 * A `Store` for sessions that a client stores, reached through a `FileProvider`. The log has the same lines, with the
 * summary, the plan and files beside it. Only one server writes these sessions. It knows only the sessions it has seen;
 * the client knows them all.
 */

import { join } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { FileProvider, ProvidedEntry } from "../../protocol/session-fs.ts";
import { emptyLog } from "../access.ts";
import type { Damage } from "../damage.ts";
import { type LogContent, parseLog } from "../log/read-log.ts";
import { visibleEvents } from "../log/rewound.ts";
import { scanEvents } from "../log-scan.ts";
import { alreadyThere, checkSessionId, noSuchSession } from "../session-id.ts";
import { failTo } from "../storage-error.ts";
import type { SessionLog, SessionSummary, Store } from "../store.ts";
import { parseSummary, summaryOfEvents } from "../summary.ts";
import { type ClientStoreFiles, clientStoreFiles } from "./client-files.ts";
import { clientLog, LOG, repair, SUMMARY } from "./client-log.ts";

export interface ClientStoreOptions {
  readonly provider: FileProvider;
  /** Parent of the session folders that hold data for this machine only. Each folder has its session's id as name. */
  readonly folder: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
}

interface Opened {
  readonly content: LogContent;
  readonly damage?: readonly Damage[];
  /** The owner that already holds the session, if any. */
  readonly owner?: object;
}

export function clientStore(options: ClientStoreOptions): Store {
  const { provider, disk } = options;
  const sessions = clientSessions(options);
  const { held, find, load, directoryOf } = sessions;
  return {
    ...logsOf(sessions),
    ...listingsOf(sessions),
    async read(sessionId) {
      const { content } = await load(sessionId);
      return { ...visibleEvents(content.events), damage: content.damage };
    },
    async *events(sessionId, onDamage) {
      const { content } = await load(sessionId);
      if (content.damage.length > 0) onDamage?.(content.damage);
      yield* visibleEvents(content.events).events;
    },
    recent: async () => undefined,
    async scan(sessionId, scan) {
      const { content } = await load(sessionId);
      return scanEvents(visibleEvents(content.events).events, scan);
    },
    async fork() {
      throw new TroupeError(
        "usage",
        "A session that a client stores cannot be forked, because the client owns its files.",
      );
    },
    async remove(sessionId) {
      if (!(await find(sessionId))) throw noSuchSession(sessionId);
      if (held.has(sessionId)) throw heldError(sessionId);
      await provider.remove(sessionId, provider.folder).catch(failTo("delete the session"));
      sessions.seen.delete(sessionId);
      await disk.remove(directoryOf(sessionId)).catch(failTo("delete the session"));
    },
  };
}

/** The sessions that this store has seen, and the parts every method needs. */
interface ClientSessions {
  /** The owner of each session that is being written. */
  readonly held: Map<string, object>;
  /** Known sessions, each with the sequence number of its last append. */
  readonly seen: Map<string, number>;
  directoryOf(sessionId: string): string;
  filesOf(sessionId: string): ClientStoreFiles;
  /** Returns `undefined` when the client has no log of the session. */
  find(sessionId: string): Promise<ProvidedEntry | undefined>;
  /** Throws when there is no such session. */
  load(sessionId: string): Promise<{ bytes: Buffer; content: LogContent }>;
  logOf(sessionId: string, opened: Opened): SessionLog;
}

function clientSessions({ provider, folder, disk, stamp }: ClientStoreOptions): ClientSessions {
  const held = new Map<string, object>();
  const seen = new Map<string, number>();
  let clock = 0;

  const directoryOf = (sessionId: string): string => join(folder, checkSessionId(sessionId));
  const filesOf = (sessionId: string): ClientStoreFiles =>
    clientStoreFiles({ provider, sessionId, directory: directoryOf(sessionId), disk });
  const find = async (sessionId: string): Promise<ProvidedEntry | undefined> => {
    const path = filesOf(sessionId).nameOf(LOG);
    const found = await provider.stat(sessionId, path).catch(failTo("look for the session"));
    if (!found?.isFile || found.size === 0) return undefined;
    if (!seen.has(sessionId)) seen.set(sessionId, 0);
    return found;
  };
  const load = async (sessionId: string): Promise<{ bytes: Buffer; content: LogContent }> => {
    if (!(await find(sessionId))) throw noSuchSession(sessionId);
    const bytes = Buffer.from((await filesOf(sessionId).read(LOG)) ?? "");
    return { bytes, content: parseLog(bytes) };
  };

  function logOf(sessionId: string, opened: Opened): SessionLog {
    const { content, damage = [], owner = {} } = opened;
    return clientLog({
      sessionId,
      content,
      damage,
      stamp,
      directory: directoryOf(sessionId),
      files: filesOf(sessionId),
      hold() {
        const holder = held.get(sessionId);
        if (holder !== undefined && holder !== owner) throw heldError(sessionId);
        held.set(sessionId, owner);
      },
      release() {
        if (held.get(sessionId) === owner) held.delete(sessionId);
      },
      onAppended: () => seen.set(sessionId, ++clock),
    });
  }

  return { held, seen, directoryOf, filesOf, find, load, logOf };
}

function logsOf({ held, find, load, filesOf, logOf }: ClientSessions): Pick<Store, "create" | "open"> {
  return {
    async create(sessionId) {
      if (await find(sessionId)) throw alreadyThere(sessionId);
      return logOf(sessionId, { content: emptyLog });
    },
    async open(sessionId) {
      const { bytes, content } = await load(sessionId);
      if (held.has(sessionId)) return readOnly(sessionId, logOf(sessionId, { content }));
      // Holds the session during the repair, so that no other log object starts to write.
      const owner = {};
      held.set(sessionId, owner);
      try {
        const { damage, content: whole } = await repair(filesOf(sessionId), bytes, content);
        return logOf(sessionId, { content: whole, damage, owner });
      } catch (error) {
        held.delete(sessionId);
        throw error;
      }
    },
  };
}

type Listings = Pick<Store, "revision" | "revisions" | "list" | "ids">;

function listingsOf({ seen, find, filesOf }: ClientSessions): Listings {
  const newestFirst = (): string[] => [...seen].sort(([, a], [, b]) => b - a).map(([sessionId]) => sessionId);
  return {
    async revision(sessionId) {
      const found = await find(sessionId);
      return found && revisionOf(found);
    },
    async revisions() {
      const all = await Promise.all(
        newestFirst().map(async (sessionId) => ({ sessionId, found: await find(sessionId) })),
      );
      return all.flatMap(({ sessionId, found }) =>
        found ? [{ sessionId, revision: revisionOf(found), changedMs: Date.parse(found.modified) || 0 }] : [],
      );
    },
    async list() {
      const summaries: SessionSummary[] = [];
      for (const sessionId of newestFirst()) {
        const found = await find(sessionId);
        if (found) summaries.push(await summaryOf(filesOf(sessionId), sessionId, found.modified));
      }
      return summaries;
    },
    async ids() {
      return newestFirst();
    },
  };
}

const revisionOf = ({ size, modified }: ProvidedEntry): string => `${size}-${modified}`;

async function summaryOf(files: ClientStoreFiles, sessionId: string, modified: string): Promise<SessionSummary> {
  const text = await files.read(SUMMARY);
  const summary = text === undefined ? undefined : await parseSummary(text, sessionId).catch(() => undefined);
  if (summary) return summary;
  const { events } = parseLog(Buffer.from((await files.read(LOG)) ?? ""));
  return summaryOfEvents(visibleEvents(events).events, sessionId, modified);
}

function readOnly(sessionId: string, log: SessionLog): SessionLog {
  const refuse = async (): Promise<never> => {
    throw heldError(sessionId);
  };
  const refused = {
    append: refuse,
    repairAfterFailedWrite: refuse,
    writeAsset: refuse,
    writeFile: refuse,
    writeSummary: refuse,
  };
  return { ...log, ...refused, heldBy: { pid: process.pid } };
}

function heldError(sessionId: string): TroupeError {
  return new TroupeError("storage", `Session ${sessionId} is being written by process ${process.pid}.`, {
    hint: "Close it there first.",
  });
}
