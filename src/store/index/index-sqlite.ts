/**
 * The session index: a derived database over all sessions, for search and for agents' questions about earlier sessions.
 * The logs are the source of truth. The index may be deleted at any time, and is rebuilt when it is missing, damaged or
 * of another version. It is held in memory if the file cannot be written. It reads logs without locks, so it never
 * blocks a writer.
 */
import { setTimeout } from "node:timers/promises";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Disk } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { storageError } from "../storage-error.ts";
import type { SessionRevision, Store } from "../store.ts";
import { summaryOfEvents } from "../summary.ts";
import { emptyDatabase, openDatabase, removeDatabase, troubleOf } from "./index-file.ts";
import { type IndexQuery, type SearchMatch, searchIndex } from "./index-search.ts";
import { IndexWriter, type SessionUpdate } from "./index-write.ts";
import { IndexRows } from "./session-rows.ts";

export type { IndexQuery as SearchQuery, SearchMatch as Found, SessionUpdate };

export interface Refreshed {
  /** Number of sessions that were read, or removed because they no longer exist. */
  readonly changed: number;
  /** Number of sessions still to be read because time ran out. */
  readonly left: number;
  /** Sessions whose log cannot be read, with the reason. */
  readonly failed: readonly { readonly sessionId: string; readonly message: string }[];
}

export interface SessionIndex {
  /**
   * Reads the sessions that changed since the last refresh. With `forMs`, it reads the newest first and stops after
   * that time; the next refresh reads the rest.
   */
  refresh(options?: { readonly forMs?: number }): Promise<Refreshed>;
  /** Deletes all rows and reads all logs again. If interrupted, the next refresh continues. */
  reindex(): Promise<Refreshed>;
  /** Returns matches as of the last refresh, best first. */
  search(query: IndexQuery): Promise<readonly SearchMatch[]>;
  /** Adds rows of a session that is open in this process. */
  update(update: SessionUpdate): Promise<void>;
  /** Removes deleted sessions and erases their text from the file. */
  remove(sessionIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface SessionIndexOptions {
  readonly path: string;
  readonly store: Pick<Store, "events" | "revisions">;
  readonly disk: Disk;
}

const MAX_ATTEMPTS = 40;
const BUSY_WAIT_MS = 50;

export function sessionIndex({ path, store, disk }: SessionIndexOptions): SessionIndex {
  let opening: Promise<DatabaseSyncInstance> | undefined;
  let isClosed = false;

  /** Runs `run` on a usable database. Waits while another process writes, and recreates the file if it is damaged. */
  async function using<T>(run: (database: DatabaseSyncInstance) => T | Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      if (isClosed) throw new TroupeError("storage", "The index of sessions is closed.");
      let database: DatabaseSyncInstance | undefined;
      try {
        opening ??= openDatabase(path, disk);
        database = await opening;
        return await run(database);
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === "unknown" || attempt === MAX_ATTEMPTS) throw storageError("use the index of sessions", error);
        if (trouble === "busy") await setTimeout(BUSY_WAIT_MS);
        if (database === undefined) opening = undefined;
        else if (trouble === "damaged") opening = remake(database);
      }
    }
  }

  async function remake(damaged: DatabaseSyncInstance): Promise<DatabaseSyncInstance> {
    damaged.close();
    await removeDatabase(path, disk);
    const fresh = await openDatabase(path, disk);
    await takeIn(fresh, store);
    return fresh;
  }

  return {
    refresh: ({ forMs } = {}) => using((database) => takeIn(database, store, forMs)),
    reindex: () =>
      using(async (database) => {
        emptyDatabase(database);
        return takeIn(database, store);
      }),
    search: (query) => using((database) => searchIndex(database, query)),
    update: (update) => using((database) => new IndexWriter(database).writeAll([update])),
    remove: (sessionIds) =>
      using((database) => {
        new IndexWriter(database).removeAll(sessionIds);
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      }),
    async close() {
      isClosed = true;
      const database = await opening?.catch(() => undefined);
      opening = undefined;
      database?.close();
    },
  };
}

/** Batch size. Many small transactions are slow; long ones block other processes. */
const BATCH_SESSIONS = 500;
const BATCH_CHARACTERS = 8 * 1024 * 1024;

async function takeIn(
  database: DatabaseSyncInstance,
  store: SessionIndexOptions["store"],
  forMs = Number.POSITIVE_INFINITY,
): Promise<Refreshed> {
  const end = performance.now() + forMs;
  const known = knownRevisions(database);
  const all = await store.revisions();
  // Without a time limit rows are inserted in order of time. With one, the newest sessions come first.
  const direction = forMs === Number.POSITIVE_INFINITY ? 1 : -1;
  const stale = all
    .filter(({ sessionId, revision }) => known.get(sessionId) !== revision)
    .sort((one, other) => direction * (one.changedMs - other.changedMs));
  for (const { sessionId } of all) known.delete(sessionId);
  const writer = new IndexWriter(database);
  if (known.size > 0) writer.removeAll([...known.keys()]);
  const failed: { sessionId: string; message: string }[] = [];
  let done = 0;
  while (done < stale.length && performance.now() < end) {
    const batch = await readBatch(store, stale.slice(done, done + BATCH_SESSIONS), { end, failed });
    writer.writeAll(batch);
    done += batch.length;
  }
  const changed = done + known.size;
  // Moves the changes from the WAL into the database file. If other processes are reading, SQLite does it later.
  if (changed > 0) database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  return { changed, left: stale.length - done, failed };
}

/** Reads all revisions as one JSON value: fetching ten thousand rows one by one takes longer than the search itself. */
function knownRevisions(database: DatabaseSyncInstance): Map<string, string> {
  const all = database.prepare("SELECT json_group_object(session_id, revision) AS known FROM indexed").get()?.known;
  return new Map(Object.entries(JSON.parse(String(all ?? "{}")) as Record<string, string>));
}

async function readBatch(
  store: SessionIndexOptions["store"],
  sessions: readonly SessionRevision[],
  { end, failed }: { end: number; failed: { sessionId: string; message: string }[] },
): Promise<SessionUpdate[]> {
  const batch: SessionUpdate[] = [];
  let characters = 0;
  for (const { sessionId, revision } of sessions) {
    const update = await readSession(store, sessionId, revision).catch((error: unknown) => {
      failed.push({ sessionId, message: error instanceof Error ? error.message : String(error) });
      return updateOf([], sessionId, revision); // not retried before the log changes
    });
    batch.push(update);
    characters += update.rows.turns.reduce((sum, { prompt, reply }) => sum + prompt.length + reply.length, 0);
    if (characters > BATCH_CHARACTERS || performance.now() > end) break;
  }
  return batch;
}

async function readSession(
  store: SessionIndexOptions["store"],
  sessionId: string,
  revision: string,
): Promise<SessionUpdate> {
  return updateOf(store.events(sessionId), sessionId, revision);
}

/** Holds only rows in memory, never all events of a log. */
async function updateOf(
  events: Iterable<SessionEvent> | AsyncIterable<SessionEvent>,
  sessionId: string,
  revision: string,
): Promise<SessionUpdate> {
  const fold = new IndexRows();
  const heads: SessionEvent[] = [];
  let [turns, updatedAt, hasPrompt] = [0, new Date(0).toISOString(), false];
  for await (const event of events) {
    fold.apply(event);
    updatedAt = event.timestamp;
    if (event.type === "assistant.turn_start") turns++;
    const isPrompt = event.type === "user.message" && !hasPrompt;
    hasPrompt ||= isPrompt;
    const isHead = heads.length === 0 || isPrompt;
    if (isHead || event.type === "session.start" || event.type === "troupe.session_named") heads.push(event);
  }
  const summary = { ...summaryOfEvents(heads, sessionId, updatedAt), turns };
  return { summary, revision, rows: fold.take(), extent: "all" };
}
