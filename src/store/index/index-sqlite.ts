/**
 * The session store: a derived index over all sessions, for search and for agents who ask about the past. The logs are
 * the truth: it may be deleted at any time, is made anew when it is missing, of another version or damaged, and lives in
 * memory where nothing can be written. It reads logs and takes no locks, so it never stands in the way of a writer.
 */
import { setTimeout } from "node:timers/promises";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Disk } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { storageError } from "../storage-error.ts";
import type { SessionRevision, Store } from "../store.ts";
import { summarise } from "../summary.ts";
import { emptyDatabase, openDatabase, removeDatabase, troubleOf } from "./index-file.ts";
import { type Found, type SearchQuery, searchIndex } from "./index-search.ts";
import { IndexWriter, type SessionUpdate } from "./index-write.ts";
import { SessionRows } from "./session-rows.ts";

export type { Found, SearchQuery, SessionUpdate };

export interface Refreshed {
  /** Sessions that were read, or forgotten because they are gone. */
  readonly changed: number;
  /** Sessions that still have to be read, because the time was up. */
  readonly left: number;
  /** Sessions whose log cannot be read, and why. */
  readonly failed: readonly { readonly sessionId: string; readonly message: string }[];
}

export interface SessionIndex {
  /** Takes in what has changed since the last time, the newest first, for so long. What is left is taken in the next time. */
  refresh(options?: { readonly forMs?: number }): Promise<Refreshed>;
  /** Forgets everything and reads all logs again. Cut short, the next refresh goes on with it. */
  reindex(): Promise<Refreshed>;
  /** Best first, as of the last refresh. */
  search(query: SearchQuery): Promise<readonly Found[]>;
  /** What a session that is open here has to add. */
  update(update: SessionUpdate): Promise<void>;
  /** Forgets sessions that are gone, so that their words are in the file no more. */
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

  /** Runs on a sound database: waits while another process writes it, and makes it anew when it proves damaged in use. */
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

/** Written together: many transactions are slow, long ones keep others waiting. */
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
  // Rows are in the order of time where there is time for all; where there is not, the newest come first.
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
  // Many changes go from the journal into the file itself; where others read, they go there later.
  if (changed > 0) database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  return { changed, left: stale.length - done, failed };
}

/** In one value: ten thousand rows one by one take longer than the search itself. */
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
      return updateOf([], sessionId, revision); // not tried again before it has changed
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

/** Holds rows, never the events of a whole log. */
async function updateOf(
  events: Iterable<SessionEvent> | AsyncIterable<SessionEvent>,
  sessionId: string,
  revision: string,
): Promise<SessionUpdate> {
  const fold = new SessionRows();
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
  const summary = { ...summarise(heads, sessionId, updatedAt), turns };
  return { summary, revision, rows: fold.take(), extent: "all" };
}
