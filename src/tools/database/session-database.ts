/**
 * The session database and the `sql` tool. The database is a scratch pad for the model with the tables of its todos.
 * SQL runs in its own process (see `program.ts`), one request at a time, so that no query blocks troupe beyond its
 * timeout.
 */

import { dirname } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { ToolError } from "../tool-error.ts";
import type { DatabaseReply, DatabaseRequest, StatementResult, StoreScope } from "./messages.ts";
import { type DatabaseProcess, databaseProcess } from "./process.ts";
import { splitStatements, verbOf, withQuoted } from "./split-statements.ts";
import { TODO_RULES } from "./todo-rules.ts";

export interface SessionDatabase {
  /** Runs SQL of the model. Several statements take effect together or not at all. */
  execute(query: DatabaseQuery): Promise<readonly StatementResult[]>;
  /** Replaces the list of `update_todo`. */
  writeTodoList(markdown: string, signal: AbortSignal): Promise<void>;
  /** Returns undefined when there is no list yet. */
  readTodoList(): Promise<string | undefined>;
  /** Returns the rows of `todos`, oldest first, bounded. */
  readTodos(): Promise<readonly Todo[]>;
  readDependencies(): Promise<readonly { readonly todoId: string; readonly dependsOn: string }[]>;
  close(): Promise<void>;
}

interface DatabaseQuery {
  readonly sql: string;
  readonly database: "session" | "session_store";
  readonly signal: AbortSignal;
}

interface Todo {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly status: string;
  readonly createdAt: string;
}

export interface SessionDatabaseOptions {
  /** `session.db` in the session folder, or `:memory:` when nothing is stored. */
  readonly path: string;
  /** The store of all sessions, if there is one: its file, and how to update it. */
  readonly past?: {
    readonly path: string;
    /** Only sessions of this repository are visible; without it all are. */
    readonly scope?: StoreScope;
    refresh(options: { readonly forMs: number }): Promise<{ readonly left: number }>;
  };
  readonly disk: Disk;
  /** Removes secrets before storage. */
  readonly redact?: (text: string) => string;
  /** Called after the todo tables were written to. */
  readonly onTodosChanged?: () => void;
  readonly timeoutMs?: number;
  /** Idle time after which the process ends. */
  readonly idleMs?: number;
}

const TIMEOUT_MS = 4000;
const IDLE_MS = 10_000;
/** Maximum time that a query about past sessions waits for the store to be updated. */
const REFRESH_MS = 2_000;
const MAX_QUERY_CHARACTERS = 200_000;
const MAX_STATEMENTS = 200;
const MAX_WAITING = 100;
const MIB = 1024 * 1024;

export const LIMITS: DatabaseRequest["limits"] = {
  rows: 200,
  characters: 16_000,
  valueCharacters: 4000,
  countedRows: 100_000,
  valueBytes: 4 * MIB,
  memoryBytes: 128 * MIB,
  pages: 16_384,
};

/** Limits for queries of troupe itself. */
export const OWN_LIMITS: DatabaseRequest["limits"] = {
  ...LIMITS,
  rows: 1000,
  characters: 2 * MIB,
  valueCharacters: 256 * 1024,
};

export const SCHEMA = `
  CREATE TABLE IF NOT EXISTS todos (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT DEFAULT 'pending',
    created_at TEXT DEFAULT (datetime('now')), updated_at TEXT DEFAULT (datetime('now')));
  CREATE TABLE IF NOT EXISTS todo_deps (
    todo_id TEXT NOT NULL, depends_on TEXT NOT NULL, PRIMARY KEY (todo_id, depends_on));
  CREATE TABLE IF NOT EXISTS todo_list (id INTEGER PRIMARY KEY CHECK (id = 1), content TEXT NOT NULL);
`;

export function sessionDatabase(options: SessionDatabaseOptions): SessionDatabase {
  const { path, past, disk, onTodosChanged, redact = (text: string) => text } = options;
  const isKept = path !== ":memory:";
  const process: DatabaseProcess = databaseProcess({
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    idleMs: isKept ? (options.idleMs ?? IDLE_MS) : undefined,
    maxWaiting: MAX_WAITING,
  });
  let making: Promise<void> | undefined;

  /** Creates the file first, because SQLite would create it with the mode of the umask. */
  async function makeFile(): Promise<void> {
    await disk.mkdir(dirname(path));
    await disk.close(await disk.openAppend(path));
  }

  async function ask(
    statements: DatabaseRequest["statements"],
    { signal, limits = LIMITS }: { signal?: AbortSignal; limits?: DatabaseRequest["limits"] } = {},
  ): Promise<Answered> {
    if (isKept) {
      making ??= makeFile();
      await making;
    }
    const watched = ["todos", "todo_deps"];
    const request: DatabaseRequest = {
      database: "session",
      path,
      schema: SCHEMA + TODO_RULES,
      statements,
      watched,
      limits,
    };
    const reply = requireOk(await process.ask(request, signal), statements.length);
    if (reply.touchedWatched) onTodosChanged?.();
    return reply;
  }

  async function read(sql: string): Promise<StatementResult["rows"]> {
    const { results } = await ask([{ sql, verb: "SELECT" }], { limits: OWN_LIMITS });
    return results[0]?.rows ?? [];
  }

  return {
    async execute({ sql, database, signal }) {
      const statements = statementsOf(sql, redact);
      if (database === "session") return (await ask(statements, { signal })).results;
      return (await askStore(past, statements, (request) => process.ask(request, signal))).results;
    },
    async writeTodoList(markdown, signal) {
      const sql =
        "INSERT INTO todo_list (id, content) VALUES (1, ?) ON CONFLICT DO UPDATE SET content = excluded.content";
      await ask([{ sql, verb: "INSERT", parameters: [redact(markdown)] }], { signal });
    },
    ...todoReaders(read),
    close: () => process.close(),
  };
}

type TodoReaders = Pick<SessionDatabase, "readTodoList" | "readTodos" | "readDependencies">;

/** Returns the methods that read the todo tables. `read` runs one SELECT. */
export function todoReaders(read: (sql: string) => Promise<StatementResult["rows"]>): TodoReaders {
  return {
    async readTodoList() {
      const [row] = await read("SELECT content FROM todo_list");
      return row?.[0] ?? undefined;
    },
    async readTodos() {
      const rows = await read(
        "SELECT id, title, description, status, created_at FROM todos ORDER BY created_at, rowid",
      );
      return rows.map(([id, title, description, status, createdAt]) => ({
        id: id ?? "",
        title: title ?? "",
        description: description ?? "",
        status: status ?? "",
        createdAt: createdAt ?? "",
      }));
    },
    async readDependencies() {
      const rows = await read("SELECT todo_id, depends_on FROM todo_deps ORDER BY todo_id, depends_on");
      return rows.map(([todoId, dependsOn]) => ({ todoId: todoId ?? "", dependsOn: dependsOn ?? "" }));
    },
  };
}

/** Runs one SELECT on the store of past sessions, after a bounded update of the store. */
async function askStore(
  past: SessionDatabaseOptions["past"],
  statements: DatabaseRequest["statements"],
  ask: (request: DatabaseRequest) => Promise<DatabaseReply>,
): Promise<Answered> {
  if (past === undefined) throw new ToolError("This session has no store of past sessions. Use database: session.");
  if (statements.length > 1) throw new ToolError("Give one SELECT at a time for session_store.");
  const { path, scope } = past;
  const shared = { database: "store", path, schema: "", watched: [], limits: LIMITS } as const;
  const { left } = await past.refresh({ forMs: REFRESH_MS });
  const reply = requireOk(await ask({ ...shared, ...defined({ scope }), statements }), statements.length);
  return left === 0 ? reply : { ...reply, results: reply.results.map((result) => ({ ...result, unread: left })) };
}

type Answered = Extract<DatabaseReply, { ok: true }>;

/** Redaction is deterministic, so stored text is found again by the text that the model writes. */
export function statementsOf(sql: string, redact: (text: string) => string): DatabaseRequest["statements"] {
  if (sql.length > MAX_QUERY_CHARACTERS)
    throw new ToolError(`The query is longer than ${MAX_QUERY_CHARACTERS} characters.`);
  const statements = splitStatements(withQuoted(sql, redact));
  if (statements.length === 0) throw new ToolError("The query contains no SQL statement.");
  if (statements.length > MAX_STATEMENTS) throw new ToolError(`Give at most ${MAX_STATEMENTS} statements at a time.`);
  return statements.map((statement) => ({ sql: statement, verb: verbOf(statement) }));
}

function requireOk(reply: DatabaseReply, count: number): Answered {
  if (reply.ok) return reply;
  const where = count > 1 ? `Statement ${reply.statement} of ${count} failed` : "The statement failed";
  const after = count > 1 && reply.isUndone ? " None of the statements took effect." : "";
  throw new ToolError(`${where}: ${reply.message}.${after}`);
}
