/**
 * The database of all boards, `board.db` in the state root. It is separate from the session index, which may be deleted
 * at any time: nothing else holds this data. A damaged file is moved aside, never deleted.
 */
import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { withFileLock } from "../../lib/node/file-lock.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { BoardPorts } from "./board.ts";

export type DatabaseConnection = DatabaseSyncInstance;

export interface BoardDatabase {
  read<T>(run: (connection: DatabaseConnection) => T): Promise<T>;
  /** Runs in one atomic transaction. The result survives a power cut once this resolves. */
  write<T>(run: (connection: DatabaseConnection) => T): Promise<T>;
  close(): Promise<void>;
}

export interface BoardDatabaseOptions extends Pick<BoardPorts, "disk" | "stamp"> {
  readonly stateRoot: string;
  /** Receives messages for the user. */
  readonly onNotice?: (message: string) => void;
}

const MAX_WAIT_MS = 5000;
const BUSY_WAIT_MS = 15;
const VERSION = 1;
/** The busy timeout is short because callers wait asynchronously. */
const SETTINGS = `
  PRAGMA busy_timeout = 20; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
  PRAGMA secure_delete = ON;
`;
const SCHEMA = `
  CREATE TABLE dynamic_context_items (
    repository TEXT NOT NULL, branch TEXT NOT NULL, src TEXT NOT NULL CHECK (src IN ('agent', 'user')), name TEXT NOT NULL,
    description TEXT NOT NULL, content TEXT NOT NULL, read_count INTEGER NOT NULL DEFAULT 0, count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, PRIMARY KEY (repository, branch, src, name)) WITHOUT ROWID;
  CREATE TABLE board_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, repository TEXT NOT NULL, branch TEXT NOT NULL, at TEXT NOT NULL,
    action TEXT NOT NULL, actor TEXT NOT NULL, session_id TEXT, restores INTEGER, undone_by INTEGER, rows TEXT NOT NULL);
  CREATE INDEX board_changes_of ON board_changes (repository, branch, id);
  PRAGMA user_version = ${VERSION};
`;

export function boardDatabase(options: BoardDatabaseOptions): BoardDatabase {
  const path = join(options.stateRoot, "board.db");
  let opening: Promise<DatabaseConnection> | undefined;
  let isClosed = false;

  /** Waits while another process writes, for at most `MAX_WAIT_MS`. Rethrows errors of `run`. */
  async function using<T>(run: (connection: DatabaseConnection) => T): Promise<T> {
    const { stamp } = options;
    const deadline = stamp.monotonic() + MAX_WAIT_MS;
    let putAside = 0;
    for (;;) {
      if (isClosed) throw new TroupeError("storage", "The context board is closed.");
      const inode = inodeOf(path);
      try {
        opening ??= open(path, options);
        return run(await opening);
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === "other") throw error;
        if (trouble === "busy" && stamp.monotonic() < deadline) {
          await stamp.sleep(BUSY_WAIT_MS * (0.5 + Math.random()));
          // Retries a failed open. An open connection stays open.
          if (!(await settled(opening))) opening = undefined;
        } else if (trouble === "damaged" && putAside++ === 0) {
          (await settled(opening))?.close();
          opening = undefined;
          await setAside(path, inode, options);
        } else throw unusable(path, error);
      }
    }
  }

  return {
    read: (run) => using(run),
    write: (run) => using((connection) => transact(connection, () => run(connection))),
    async close() {
      isClosed = true;
      (await settled(opening))?.close();
      opening = undefined;
    },
  };
}

async function open(path: string, options: BoardDatabaseOptions): Promise<DatabaseConnection> {
  const { disk } = options;
  // Creates the file first: SQLite would use the umask's mode. Its side files inherit this file's mode.
  await disk.mkdir(dirname(path));
  await disk.close(await disk.openAppend(path));
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const connection = new DatabaseSync(path);
  try {
    connection.exec(SETTINGS);
    if (versionOf(connection) === 0) {
      transact(connection, () => {
        if (versionOf(connection) === 0) connection.exec(SCHEMA);
      });
    }
    const version = versionOf(connection);
    if (version > VERSION) throw newer(path);
    const check = connection.prepare("PRAGMA quick_check(1)").get()?.quick_check;
    if (check !== "ok") throw new Error(`malformed: ${String(check)}`);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

const versionOf = (connection: DatabaseConnection): number =>
  Number(connection.prepare("PRAGMA user_version").get()?.user_version ?? 0);

function transact<T>(connection: DatabaseConnection, run: () => T): T {
  connection.exec("BEGIN IMMEDIATE");
  try {
    const result = run();
    connection.exec("COMMIT");
    return result;
  } catch (error) {
    try {
      connection.exec("ROLLBACK");
    } catch {
      // Ignored: the error that caused the rollback is thrown.
    }
    throw error;
  }
}

/** Moves the damaged file aside, unless another process has already replaced it. */
async function setAside(path: string, inode: number | undefined, options: BoardDatabaseOptions): Promise<void> {
  const { disk, stamp, onNotice } = options;
  await withFileLock({ path, disk, stamp, Failure: TroupeError }, async () => {
    if (inodeOf(path) !== inode) return;
    const aside = `${path}.damaged-${new Date(stamp.now()).toISOString().replace(/[:.]/g, "-")}`;
    for (const suffix of ["-wal", "-shm", ""]) {
      if (inodeOf(`${path}${suffix}`) !== undefined) await disk.rename(`${path}${suffix}`, `${aside}${suffix}`);
    }
    onNotice?.(`The context board was damaged. It was renamed to ${basename(aside)}, and a new one was created.`);
  });
}

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

const settled = (opening: Promise<DatabaseConnection> | undefined): Promise<DatabaseConnection | undefined> =>
  opening?.catch(() => undefined) ?? Promise.resolve(undefined);

function newer(path: string): TroupeError {
  const hint = "Use that version, or another state root (TROUPE_HOME).";
  return new TroupeError("storage", `${path} was written by a newer version of troupe.`, { hint });
}

function unusable(path: string, error: unknown): TroupeError {
  const detail = error instanceof Error ? error.message : String(error);
  return new TroupeError("storage", `The context board cannot be used: ${detail}`, {
    hint: `Check ${path}: its owner, its permissions, the space on its disk.`,
    cause: error,
  });
}

function troubleOf(error: unknown): "damaged" | "busy" | "storage" | "other" {
  if (error instanceof TroupeError) return "other";
  const message = error instanceof Error ? error.message : "";
  if (/malformed|not a database|corrupt|no such (table|column)/i.test(message)) return "damaged";
  if (/locked|busy/i.test(message)) return "busy";
  return /disk|readonly|read-only|unable to open|EACCES|ENOSPC|EROFS|EPERM|ENOTDIR|EISDIR/i.test(message)
    ? "storage"
    : "other";
}
