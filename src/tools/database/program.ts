/**
 * Code that runs in the database process. An endless query blocks its thread inside SQLite and cannot be interrupted.
 * So the process can be killed at any time, and it kills itself when its parent is gone.
 *
 * Both functions are sent as source text. They must not reference anything outside themselves; dependencies are passed
 * as arguments.
 */
import type * as Sqlite from "@photostructure/sqlite";

export interface DatabaseRequest {
  /** "store" is the read-only index of all sessions. */
  readonly database: "session" | "store";
  readonly path: string;
  /** For the store: only sessions of this repository are visible. Without it all are. */
  readonly scope?: StoreScope;
  /** Executed first; its result is not reported. */
  readonly schema: string;
  readonly statements: readonly {
    readonly sql: string;
    readonly verb: string;
    readonly parameters?: readonly string[];
  }[];
  /** Reports whether one of these tables was written to. */
  readonly watched: readonly string[];
  readonly limits: DatabaseLimits;
}

/** Identifies a repository by its location, because the name of its remote is taken from its own configuration. */
export interface StoreScope {
  readonly cwd: string;
  readonly gitRoot?: string;
}

interface DatabaseLimits {
  readonly rows: number;
  readonly characters: number;
  readonly valueCharacters: number;
  readonly countedRows: number;
  readonly valueBytes: number;
  readonly memoryBytes: number;
  readonly pages: number;
}

export interface StatementResult {
  readonly verb: string;
  /** The first kind of write, for a statement that begins with WITH. */
  readonly wrote: "insert" | "update" | "delete" | undefined;
  readonly changes: number;
  readonly lastRowId: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
  /** Number of omitted rows; counting stops at a limit. */
  readonly leftOut: number;
  readonly isCountCut: boolean;
  /** Number of past sessions that the store has not indexed yet. */
  readonly unread?: number;
  /** Number of older sessions of this repository that could not be searched. */
  readonly older?: number;
}

export type DatabaseReply =
  | { readonly ok: true; readonly results: readonly StatementResult[]; readonly touchedWatched: boolean }
  | { readonly ok: false; readonly message: string; readonly statement: number; readonly isUndone: boolean };

export interface ProgramData {
  readonly sqlite: string;
  readonly worker: string;
}

/** Main thread: passes messages between the parent process and the thread that may block. */
export function supervise(require: NodeJS.Require, data: ProgramData): void {
  const { Worker } = require("node:worker_threads") as typeof import("node:worker_threads");
  const worker = new Worker(data.worker, { eval: true, workerData: data });
  const end = (): void => void process.kill(process.pid, "SIGKILL");
  worker.on("message", (reply: unknown) => process.send?.(reply));
  worker.on("error", end);
  process.on("message", (request: unknown) => worker.postMessage(request));
  process.on("disconnect", end);
}

/** Worker thread: the only one that uses SQLite. */
export function serve(require: NodeJS.Require): void {
  const { parentPort, workerData } = require("node:worker_threads") as typeof import("node:worker_threads");
  const { DatabaseSync } = require((workerData as ProgramData).sqlite) as typeof Sqlite;
  const open = new Map<string, Opened>();
  const ALLOW = 0;
  const DENY = 1;
  const action = {
    delete: 9,
    pragma: 19,
    read: 20,
    select: 21,
    transaction: 22,
    update: 23,
    function: 31,
    recursive: 33,
  };
  const insert = 18;
  const attaching = [24, 25];
  const creatingVirtualTable = 29;
  const dropping = [11, 13];
  const altering = 26;
  const reading: readonly number[] = [action.read, action.select, action.function, action.recursive];
  const harmlessPragmas = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "quick_check",
    "integrity_check",
    "data_version",
  ];
  const forbiddenFunctions = ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"];

  interface Opened {
    readonly connection: Sqlite.DatabaseSyncInstance;
    wrote: StatementResult["wrote"];
    hasWritten: boolean;
    touched: Set<string>;
    refused: string | undefined;
    /** Set for a copy. */
    older?: number;
  }
  interface Copied {
    readonly source: Sqlite.DatabaseSyncInstance;
    version: unknown;
    opened: Opened | undefined;
  }
  const copies = new Map<string, Copied>();
  /** Limits for copying sessions, newest first. */
  const maxCopiedCharacters = 16 * 1024 * 1024;
  const maxCopyingMs = 1500;
  /** Tables whose rows belong to one session each. */
  const rowTables = ["turns", "checkpoints", "session_files", "session_refs"];

  parentPort?.on("message", (request: DatabaseRequest) => parentPort.postMessage(answer(request)));

  function answer(request: DatabaseRequest): DatabaseReply {
    let statement = 0;
    let opened: Opened | undefined;
    const isWrapped =
      request.statements.length > 1 && !request.statements.some(({ verb }) => controlsTransaction(verb));
    try {
      opened = connect(request);
      const results: StatementResult[] = [];
      if (isWrapped) opened.connection.exec("BEGIN");
      for (const one of request.statements) {
        statement++;
        results.push(run(opened, one, request.limits));
      }
      if (isWrapped) opened.connection.exec("COMMIT");
      if (opened.connection.isTransaction)
        throw new Error("The transaction was left open: end it with COMMIT in the same query");
      const { touched } = opened;
      const { older } = opened;
      if (older !== undefined && older > 0) results[0] = { ...(results[0] as StatementResult), older };
      return { ok: true, results, touchedWatched: request.watched.some((table) => touched.has(table)) };
    } catch (error) {
      const message = opened?.refused ?? (error instanceof Error ? error.message : String(error));
      const isUndone = opened?.connection.isTransaction ?? false;
      if (isUndone) opened?.connection.exec("ROLLBACK");
      return { ok: false, message, statement, isUndone };
    }
  }

  function controlsTransaction(verb: string): boolean {
    return ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].includes(verb);
  }

  function connect({ database, path, scope, schema, limits }: DatabaseRequest): Opened {
    const isReadOnly = database === "store";
    let opened = scope === undefined ? open.get(path) : copyOf(path, scope, limits);
    if (opened === undefined) {
      opened = openFile(path, limits, isReadOnly);
      opened.connection.exec(isReadOnly ? "PRAGMA query_only = ON" : `PRAGMA max_page_count = ${limits.pages}`);
      open.set(path, opened);
    }
    opened.connection.setAuthorizer(null);
    if (schema !== "") opened.connection.exec(schema);
    opened.touched.clear();
    opened.refused = undefined;
    const current = opened;
    opened.connection.setAuthorizer((code, first, second) => {
      const refusal = isReadOnly ? refusalWhenReading(code, first) : refusalOf(code, first, second);
      if (refusal !== undefined) current.refused = refusal;
      else note(current, code, first);
      return refusal === undefined ? ALLOW : DENY;
    });
    return opened;
  }

  function openFile(path: string, limits: DatabaseLimits, readOnly: boolean): Opened {
    const connection = new DatabaseSync(path, {
      readOnly,
      timeout: 2000,
      defensive: true,
      enableForeignKeyConstraints: false,
      limits: { length: limits.valueBytes, attach: 0 },
    });
    connection.exec(
      `PRAGMA hard_heap_limit = ${limits.memoryBytes}; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY`,
    );
    return { connection, wrote: undefined, hasWritten: false, touched: new Set(), refused: undefined };
  }

  /** Returns a database with the sessions of one repository only, so that no query can find others. */
  function copyOf(path: string, scope: StoreScope, limits: DatabaseLimits): Opened {
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

  function copyInto(opened: Opened, source: Sqlite.DatabaseSyncInstance, { cwd, gitRoot }: StoreScope): void {
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
    const end = performance.now() + maxCopyingMs;
    let characters = 0;
    let taken = 0;
    for (const id of ids) {
      if (characters > maxCopiedCharacters || performance.now() > end) break;
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

  function refusalWhenReading(code: number, first: string | null): string | undefined {
    // The full-text index reads this pragma itself to detect writes.
    const isAboutVersion = code === action.pragma && first === "data_version";
    return reading.includes(code) || isAboutVersion ? undefined : "This database can only be read, with SELECT";
  }

  function refusalOf(code: number, first: string | null, second: string | null): string | undefined {
    if (attaching.includes(code)) return "Other database files cannot be reached (ATTACH, DETACH, VACUUM)";
    if (code === action.pragma && !harmlessPragmas.includes(String(first).toLowerCase()))
      return `PRAGMA ${first} is not available here`;
    if (code === action.function && forbiddenFunctions.includes(String(second).toLowerCase()))
      return `The function ${second} is not available here`;
    if (code === creatingVirtualTable && String(second).toLowerCase() !== "fts5")
      return `Virtual tables of ${second} are not available here`;
    return undefined;
  }

  function note(opened: Opened, code: number, table: string | null): void {
    const wrote =
      code === insert ? "insert" : code === action.update ? "update" : code === action.delete ? "delete" : undefined;
    if (wrote !== undefined) {
      opened.wrote ??= wrote;
      opened.hasWritten = true;
    }
    if (wrote !== undefined || dropping.includes(code)) opened.touched.add(String(table).toLowerCase());
    if (code === altering) opened.hasWritten = true;
  }

  function run(
    opened: Opened,
    { sql, verb, parameters = [] }: DatabaseRequest["statements"][number],
    limits: DatabaseLimits,
  ): StatementResult {
    opened.wrote = undefined;
    opened.hasWritten = false;
    const before = new Set(opened.touched);
    const statement = opened.connection.prepare(sql, { readBigInts: true, returnArrays: true });
    const columns = statement.columns().map(({ name }) => name);
    const { wrote, hasWritten } = opened;
    const base = { verb, wrote, columns, lastRowId: "0" };
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...parameters);
      const isData = ["INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"].includes(verb);
      if (isData && Number(changes) === 0) opened.touched = before;
      return {
        ...base,
        changes: Number(changes),
        lastRowId: String(lastInsertRowid),
        rows: [],
        leftOut: 0,
        isCountCut: false,
      };
    }
    const read = readRows(statement.iterate(...parameters), limits, hasWritten);
    const changes = hasWritten ? read.rows.length + read.leftOut : 0;
    if (hasWritten && changes === 0) opened.touched = before;
    return { ...base, ...read, changes };
  }

  /** A writing statement must run to its end. A reading one may stop once enough omitted rows are counted. */
  function readRows(
    source: Iterable<unknown>,
    limits: DatabaseLimits,
    hasWritten: boolean,
  ): Pick<StatementResult, "rows" | "leftOut" | "isCountCut"> {
    const rows: (string | null)[][] = [];
    let characters = 0;
    let leftOut = 0;
    for (const row of source) {
      const cells = leftOut > 0 ? [] : (row as unknown[]).map((value) => cell(value, limits));
      characters += cells.reduce((sum, text) => sum + (text?.length ?? 4) + 3, 0);
      if (leftOut === 0 && rows.length < limits.rows && (characters <= limits.characters || rows.length === 0))
        rows.push(cells);
      else leftOut++;
      if (leftOut >= limits.countedRows && !hasWritten) return { rows, leftOut, isCountCut: true };
    }
    return { rows, leftOut, isCountCut: false };
  }

  function cell(value: unknown, { valueCharacters }: DatabaseLimits): string | null {
    if (value === null || value === undefined) return null;
    if (value instanceof Uint8Array) return `<${value.length} bytes>`;
    const text = String(value);
    return text.length > valueCharacters ? `${text.slice(0, valueCharacters)}…` : text;
  }
}
