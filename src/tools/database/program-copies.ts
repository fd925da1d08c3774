/** Copies the sessions of one repository out of the store. Runs in the database process: see `program.ts`. */
import type * as Sqlite from "@photostructure/sqlite";
import type { DatabaseLimits, OpenDatabase, StoreScope } from "./messages.ts";

type OpenFile = (path: string, limits: DatabaseLimits, readOnly: boolean) => OpenDatabase;

/**
 * Returns a function that opens a database with the sessions of one repository only, so that no query can find others.
 * A copy is reused until the store changes. Self-contained: sent to the database process as source text.
 */
export function scopedCopies(
  openFile: OpenFile,
  copyInto: typeof copySessions,
): (path: string, scope: StoreScope, limits: DatabaseLimits) => OpenDatabase {
  interface Copy {
    readonly source: Sqlite.DatabaseSyncInstance;
    version: unknown;
    opened: OpenDatabase | undefined;
  }
  const copies = new Map<string, Copy>();
  return copyOf;

  function copyOf(path: string, scope: StoreScope, limits: DatabaseLimits): OpenDatabase {
    const key = JSON.stringify([path, scope]);
    const copied = copies.get(key) ?? {
      source: openFile(path, limits, true).connection,
      version: -1,
      opened: undefined,
    };
    copies.set(key, copied);
    const version = Object.values(copied.source.prepare("PRAGMA data_version").get() ?? {})[0];
    if (copied.opened !== undefined && copied.version === version) return copied.opened;
    copied.opened?.connection.close();
    copied.opened = undefined;
    const opened = openFile(":memory:", limits, false);
    copied.source.exec("BEGIN");
    try {
      copyInto(opened, copied.source, scope);
    } finally {
      copied.source.exec("COMMIT");
    }
    opened.connection.exec("PRAGMA query_only = ON");
    copied.opened = opened;
    copied.version = version;
    return opened;
  }
}

/** Copies sessions, newest first, up to a limit. Self-contained: sent to the database process as source text. */
export function copySessions(
  opened: OpenDatabase,
  source: Sqlite.DatabaseSyncInstance,
  { cwd, gitRoot }: StoreScope,
): void {
  const maxCharacters = 16 * 1024 * 1024;
  const maxMs = 1500;
  /** Tables whose rows belong to one session each. */
  const rowTables = ["turns", "checkpoints", "session_files", "session_refs"];
  const { connection } = opened;
  // A folder may have become a repository after a session ran in it.
  const folder = gitRoot ?? cwd;
  const below = folder.endsWith("/") ? folder : `${folder}/`;
  const unversioned = "git_root IS NULL AND (cwd = ? OR substr(cwd, 1, length(?)) = ?)";
  const ids = source
    .prepare(`SELECT id FROM sessions WHERE git_root = ? OR ${unversioned} ORDER BY updated_at DESC`)
    .all(gitRoot ?? null, folder, below, below)
    .map((row) => String(row.id));
  const tables = ["sessions", ...rowTables, "search_index"];
  const schemas = source.prepare("SELECT sql FROM sqlite_master WHERE tbl_name IN (SELECT value FROM json_each(?))");
  // Drops the prefix indexes, which would take longer to build than everything else.
  for (const { sql } of schemas.all(JSON.stringify(tables)))
    if (sql !== null) connection.exec(String(sql).replace(/,\s*prefix = '[^']*'/, ""));
  connection.exec("BEGIN");
  const statements = new Map<string, Sqlite.StatementSyncInstance>();
  const end = performance.now() + maxMs;
  let characters = 0;
  let taken = 0;
  for (const id of ids) {
    if (characters > maxCharacters || performance.now() > end) break;
    taken++;
    copyRows("sessions", "id = ?", id);
    for (const table of rowTables) for (const row of copyRows(table, "session_id = ?", id)) copySearched(row);
  }
  connection.exec("COMMIT");
  opened.older = ids.length - taken;

  function copySearched({ search_id: searchId }: Record<string, unknown>): void {
    if (searchId === null || searchId === undefined) return;
    copyRows("search_index", "rowid = ?", Number(searchId), "rowid, *");
  }

  function copyRows(table: string, where: string, value: string | number, columns = "*"): Record<string, unknown>[] {
    const rows = prepared(source, `SELECT ${columns} FROM ${table} WHERE ${where}`).all(value);
    for (const row of rows) {
      const names = Object.keys(row);
      const marks = names.map(() => "?").join();
      prepared(connection, `INSERT INTO ${table} (${names.join()}) VALUES (${marks})`).run(...Object.values(row));
      for (const cell of Object.values(row)) if (typeof cell === "string") characters += cell.length;
    }
    return rows;
  }

  function prepared(database: Sqlite.DatabaseSyncInstance, sql: string): Sqlite.StatementSyncInstance {
    const statement = statements.get(sql) ?? database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }
}
