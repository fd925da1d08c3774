/**
 * A derived index over all sessions for fast lists and for search. The logs are the truth: the index may be deleted at
 * any time, is made anew when it is missing, of another version or damaged, and lives in memory where nothing can be
 * written. It reads logs and takes no locks, so it never stands in the way of a writer.
 */
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Disk } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { storageError } from "./storage-error.ts";
import type { SessionSummary, Store } from "./store.ts";

export interface SessionIndex {
  /** Takes in what has changed since the last time; returns how many sessions that was. */
  refresh(): Promise<number>;
  /** Newest first, as of the last refresh. */
  list(): Promise<readonly SessionSummary[]>;
  /** The turns that hold all the words, best first, as of the last refresh. */
  search(words: string, limit?: number): Promise<readonly FoundTurn[]>;
  close(): Promise<void>;
}

export interface FoundTurn {
  readonly sessionId: string;
  /** Counts the messages of the user in a session, from 1. */
  readonly turn: number;
  readonly prompt: string;
  readonly reply: string;
}

export interface SessionIndexOptions {
  readonly path: string;
  readonly store: Pick<Store, "list" | "read" | "revision">;
  readonly disk: Disk;
}

export function sessionIndex({ path, store, disk }: SessionIndexOptions): SessionIndex {
  let opening: Promise<DatabaseSyncInstance> | undefined;
  let isClosed = false;

  /** Runs on a sound database: waits while another process writes it, and makes it anew when it proves damaged in use. */
  async function using<T>(run: (database: DatabaseSyncInstance) => T | Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      if (isClosed) throw new TroupeError("storage", "The index of sessions is closed.");
      opening ??= openDatabase(path, disk);
      const database = await opening;
      try {
        return await run(database);
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === "unknown" || attempt === MAX_ATTEMPTS) throw storageError("use the index of sessions", error);
        if (trouble === "busy") await setTimeout(BUSY_WAIT_MS);
        else opening = remake(database);
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
    refresh: () => using((database) => takeIn(database, store)),
    list: () => using(listSessions),
    search: (words, limit = 20) => using((database) => searchTurns(database, words, limit)),
    async close() {
      isClosed = true;
      const database = await opening?.catch(() => undefined);
      opening = undefined;
      database?.close();
    },
  };
}

const MAX_ATTEMPTS = 40;
const BUSY_WAIT_MS = 50;
const VERSION = 1;
const SCHEMA = `
  CREATE TABLE session (id TEXT PRIMARY KEY, revision TEXT NOT NULL, position INTEGER NOT NULL, summary TEXT NOT NULL);
  CREATE VIRTUAL TABLE turn USING fts5 (prompt, reply, session UNINDEXED, number UNINDEXED);
  PRAGMA user_version = ${VERSION};
`;
/** What a power cut breaks is made anew, and waiting is done outside, where it does not stop everything else. */
const SETTINGS = "PRAGMA synchronous = OFF; PRAGMA busy_timeout = 20";
const MAX_TURN_CHARACTERS = 20_000;

async function openDatabase(path: string, disk: Disk): Promise<DatabaseSyncInstance> {
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const opened = openSound(() => new DatabaseSync(path));
  if (opened) return opened;
  try {
    await disk.mkdir(dirname(path));
    await removeDatabase(path, disk);
    return create(new DatabaseSync(path));
  } catch {
    return create(new DatabaseSync(":memory:"));
  }
}

/** Undefined when the file is missing, of another version or damaged. */
function openSound(open: () => DatabaseSyncInstance): DatabaseSyncInstance | undefined {
  let database: DatabaseSyncInstance | undefined;
  try {
    database = open();
    database.exec(SETTINGS);
    const version = database.prepare("PRAGMA user_version").get()?.user_version;
    const check = database.prepare("PRAGMA quick_check(1)").get()?.quick_check;
    if (version === VERSION && check === "ok") return database;
  } catch (error) {
    if (troubleOf(error) === "busy") return database;
  }
  database?.close();
  return undefined;
}

function create(database: DatabaseSyncInstance): DatabaseSyncInstance {
  database.exec(SETTINGS);
  database.exec(SCHEMA);
  return database;
}

async function removeDatabase(path: string, disk: Disk): Promise<void> {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) await disk.remove(`${path}${suffix}`);
}

async function takeIn(database: DatabaseSyncInstance, store: SessionIndexOptions["store"]): Promise<number> {
  const summaries = await store.list();
  const known = new Map(
    database
      .prepare("SELECT id, revision FROM session")
      .all()
      .map((row) => [String(row.id), String(row.revision)]),
  );
  let changes = 0;
  for (const [index, summary] of summaries.entries()) {
    const { sessionId } = summary;
    const position = summaries.length - index;
    const revision = await store.revision(sessionId);
    const isSame = revision !== undefined && known.get(sessionId) === revision;
    known.delete(sessionId);
    if (revision === undefined) continue;
    const turns = isSame ? undefined : await readTurns(store, sessionId);
    writeSession(database, { summary, revision, position, turns });
    if (!isSame) changes++;
  }
  for (const gone of known.keys()) removeSession(database, gone);
  return changes + known.size;
}

interface Turn {
  prompt: string;
  reply: string;
}

interface Row {
  summary: SessionSummary;
  revision: string;
  position: number;
  /** Undefined when they are as before. */
  turns: readonly Turn[] | undefined;
}

function writeSession(database: DatabaseSyncInstance, { summary, revision, position, turns }: Row): void {
  const { sessionId } = summary;
  database.exec("BEGIN IMMEDIATE");
  try {
    database
      .prepare("INSERT OR REPLACE INTO session (id, revision, position, summary) VALUES (?, ?, ?, ?)")
      .run(sessionId, revision, position, JSON.stringify(summary));
    if (turns) {
      database.prepare("DELETE FROM turn WHERE session = ?").run(sessionId);
      const insert = database.prepare("INSERT INTO turn (prompt, reply, session, number) VALUES (?, ?, ?, ?)");
      for (const [index, turn] of turns.entries()) insert.run(turn.prompt, turn.reply, sessionId, index + 1);
    }
    database.exec("COMMIT");
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function removeSession(database: DatabaseSyncInstance, sessionId: string): void {
  database.prepare("DELETE FROM turn WHERE session = ?").run(sessionId);
  database.prepare("DELETE FROM session WHERE id = ?").run(sessionId);
}

function rollBack(database: DatabaseSyncInstance): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // The failure that led here is the one to report.
  }
}

async function readTurns(store: SessionIndexOptions["store"], sessionId: string): Promise<Turn[]> {
  const { events } = await store.read(sessionId).catch(() => ({ events: [] as readonly SessionEvent[] }));
  const turns: Turn[] = [];
  for (const event of events) {
    if (event.agentId !== undefined) continue;
    if (event.type === "user.message") turns.push({ prompt: clipped("", event.data.content), reply: "" });
    const current = turns.at(-1);
    if (event.type === "assistant.message" && current) current.reply = clipped(current.reply, event.data.content);
  }
  return turns;
}

/** Logs are not checked against the table of events, so a field may be anything. */
function clipped(before: string, more: unknown): string {
  if (typeof more !== "string" || more === "") return before;
  return (before === "" ? more : `${before}\n${more}`).slice(0, MAX_TURN_CHARACTERS);
}

function listSessions(database: DatabaseSyncInstance): SessionSummary[] {
  const rows = database.prepare("SELECT summary FROM session ORDER BY position DESC").all();
  return rows.map((row) => JSON.parse(String(row.summary)) as SessionSummary);
}

function searchTurns(database: DatabaseSyncInstance, words: string, limit: number): FoundTurn[] {
  const terms = words.split(/\s+/).filter((word) => word !== "");
  if (terms.length === 0) return [];
  const query = terms.map((term) => `"${term.replaceAll('"', '""')}"*`).join(" ");
  return database
    .prepare("SELECT session, number, prompt, reply FROM turn WHERE turn MATCH ? ORDER BY rank LIMIT ?")
    .all(query, Math.max(0, Math.min(limit, 1000)))
    .map((row) => ({
      sessionId: String(row.session),
      turn: Number(row.number),
      prompt: String(row.prompt),
      reply: String(row.reply),
    }));
}

function troubleOf(error: unknown): "damaged" | "busy" | "unknown" {
  const message = error instanceof Error ? error.message : "";
  if (/malformed|not a database|corrupt|no such (table|column)|disk I\/O/i.test(message)) return "damaged";
  return /locked|busy/i.test(message) ? "busy" : "unknown";
}
