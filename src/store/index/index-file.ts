/**
 * The database file of the session index: its schema, how it is opened, and how it is recreated when it is unusable.
 */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import type { Disk } from "../../lib/node/disk.ts";

const VERSION = 2;

/** `indexed` is internal. Agents can read the other tables with the tool `sql`. */
const SCHEMA = `
  CREATE TABLE indexed (session_id TEXT PRIMARY KEY, revision TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE sessions (
    id TEXT PRIMARY KEY, cwd TEXT NOT NULL, repository TEXT, branch TEXT, host_type TEXT, summary TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, name TEXT, git_root TEXT, model TEXT) WITHOUT ROWID;
  CREATE TABLE turns (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, turn_index INTEGER NOT NULL,
    user_message TEXT NOT NULL, assistant_response TEXT NOT NULL, timestamp TEXT NOT NULL, search_id INTEGER);
  CREATE TABLE checkpoints (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, checkpoint_number INTEGER NOT NULL, title TEXT, overview TEXT,
    history TEXT, work_done TEXT, technical_details TEXT, important_files TEXT, next_steps TEXT, created_at TEXT,
    search_id INTEGER);
  CREATE TABLE session_files (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, file_path TEXT NOT NULL, tool_name TEXT NOT NULL,
    turn_index INTEGER NOT NULL, first_seen_at TEXT NOT NULL, search_id INTEGER);
  CREATE TABLE session_refs (
    session_id TEXT NOT NULL, ref_type TEXT NOT NULL, ref_value TEXT NOT NULL, turn_index INTEGER NOT NULL,
    created_at TEXT NOT NULL, PRIMARY KEY (session_id, ref_type, ref_value)) WITHOUT ROWID;
  CREATE VIRTUAL TABLE search_index USING fts5 (
    content, session_id UNINDEXED, source_type UNINDEXED, source_id UNINDEXED, prefix = '2 3 4');
  INSERT INTO search_index (search_index, rank) VALUES ('hashsize', 16777216);
  CREATE INDEX sessions_repository ON sessions (repository, branch);
  CREATE INDEX sessions_cwd ON sessions (cwd);
  CREATE UNIQUE INDEX turns_session ON turns (session_id, turn_index);
  CREATE UNIQUE INDEX checkpoints_session ON checkpoints (session_id, checkpoint_number);
  CREATE UNIQUE INDEX session_files_session ON session_files (session_id, file_path, tool_name);
  CREATE INDEX session_files_path ON session_files (file_path);
  CREATE INDEX session_refs_value ON session_refs (ref_type, ref_value);
  PRAGMA user_version = ${VERSION};
`;
/** The busy timeout is short because callers wait asynchronously. The logs replace whatever a power cut loses. */
const SETTINGS =
  "PRAGMA busy_timeout = 20; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON";
/** Only files up to this size are checked on open: a larger one takes seconds. Damage in it shows in use. */
const CHECKED_BYTES = 4 * 1024 * 1024;

export async function openDatabase(path: string, disk: Disk): Promise<DatabaseSyncInstance> {
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const opened = existsSync(path) ? openSound(path, () => new DatabaseSync(path)) : undefined;
  if (opened) return opened;
  try {
    await disk.mkdir(dirname(path));
    await removeDatabase(path, disk);
    // Creates the file first: SQLite would use the umask's mode.
    await disk.close(await disk.openAppend(path));
    return create(new DatabaseSync(path));
  } catch (error) {
    if (troubleOf(error) === "busy") throw error;
    return create(new DatabaseSync(":memory:"));
  }
}

/**
 * Returns `undefined` when the file has another version or is damaged. Creates the tables in an empty file, which
 * another process has just created.
 */
function openSound(path: string, open: () => DatabaseSyncInstance): DatabaseSyncInstance | undefined {
  let database: DatabaseSyncInstance | undefined;
  try {
    database = open();
    if (versionOf(database) === 0 && statSync(path).size === 0) return create(database);
    database.exec(SETTINGS);
    const isSound = statSync(path).size > CHECKED_BYTES || database.prepare("PRAGMA quick_check(1)").get()?.quick_check;
    if (versionOf(database) === VERSION && (isSound === true || isSound === "ok")) return database;
  } catch (error) {
    if (troubleOf(error) === "busy") return database;
  }
  database?.close();
  return undefined;
}

function versionOf(database: DatabaseSyncInstance): number {
  return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}

function create(database: DatabaseSyncInstance): DatabaseSyncInstance {
  database.exec(SETTINGS);
  inTransaction(database, () => {
    if (versionOf(database) !== VERSION) database.exec(SCHEMA);
  });
  return database;
}

export async function removeDatabase(path: string, disk: Disk): Promise<void> {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) await disk.remove(`${path}${suffix}`);
}

const TABLES = ["indexed", "sessions", "turns", "checkpoints", "session_files", "session_refs", "search_index"];

/** Drops and recreates all tables. The caller must read all logs again. */
export function emptyDatabase(database: DatabaseSyncInstance): void {
  inTransaction(database, () => {
    for (const table of TABLES) database.exec(`DROP TABLE IF EXISTS ${table}`);
    database.exec(SCHEMA);
  });
}

export function inTransaction<T>(database: DatabaseSyncInstance, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    try {
      database.exec("ROLLBACK");
    } catch {
      // Ignored: the error that caused the rollback is thrown.
    }
    throw error;
  }
}

export function troubleOf(error: unknown): "damaged" | "busy" | "unknown" {
  const message = error instanceof Error ? error.message : "";
  if (/malformed|not a database|corrupt|no such (table|column)|disk I\/O/i.test(message)) return "damaged";
  return /locked|busy/i.test(message) ? "busy" : "unknown";
}
