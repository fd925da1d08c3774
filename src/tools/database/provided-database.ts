/**
 * The session database when a client stores it. The client runs the statements; this module decides which are allowed.
 */
import type { SqliteProvider, SqliteRows, SqliteStatement } from "../../protocol/session-fs.ts";
import { ToolError } from "../tool-error.ts";
import type { DatabaseRequest, StatementResult } from "./messages.ts";
import { LIMITS, OWN_LIMITS, SCHEMA, type SessionDatabase, statementsOf, todoReaders } from "./session-database.ts";
import { splitStatements, wordsOf } from "./split-statements.ts";
import { TODO_RULES } from "./todo-rules.ts";

export interface ProvidedDatabaseOptions {
  readonly sessionId: string;
  readonly sqlite: SqliteProvider;
  /** Answers queries about past sessions. */
  readonly local: SessionDatabase;
  readonly redact?: (text: string) => string;
  readonly onTodosChanged?: () => void;
}

type Statement = DatabaseRequest["statements"][number];
type Limits = DatabaseRequest["limits"];

export function providedDatabase(options: ProvidedDatabaseOptions): SessionDatabase {
  const { sessionId, sqlite, local, onTodosChanged, redact = (text: string) => text } = options;
  let making: Promise<void> | undefined;

  async function makeTables(): Promise<void> {
    for (const query of splitStatements(SCHEMA + TODO_RULES))
      await sqlite.query(sessionId, { queryType: "exec", query });
  }

  async function run(statements: readonly SqliteStatement[], signal?: AbortSignal): Promise<readonly SqliteRows[]> {
    making ??= makeTables();
    making.catch(() => {
      making = undefined;
    });
    try {
      await making;
      const [only] = statements;
      if (only && statements.length === 1) return [await sqlite.query(sessionId, only, signal)];
      return await sqlite.transaction(sessionId, statements, signal);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ToolError(
        `The client that stores the database reported an error: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  /** Does not create a database just to read from it. */
  async function read(query: string): Promise<StatementResult["rows"]> {
    if (!making && !(await sqlite.exists(sessionId))) return [];
    const [found] = await run([{ queryType: "query", query }]);
    return found ? resultOf(found, "SELECT", OWN_LIMITS).rows : [];
  }

  return {
    async execute({ sql, database, signal }) {
      if (database === "session_store") return local.execute({ sql, database, signal });
      const statements = statementsOf(sql, redact);
      for (const statement of statements) requireHarmless(statement);
      const asked = statements.map(({ sql: query, verb }) => ({ queryType: typeOf(query, verb), query }));
      const answers = await run(asked, signal);
      if (statements.some(({ sql: query, verb }) => typeOf(query, verb) !== "query" && namesTodos(query)))
        onTodosChanged?.();
      return statements.map((statement, index) => ({
        ...resultOf(answers[index] ?? nothing, statement.verb, LIMITS),
        wrote: wroteOf(statement),
      }));
    },
    async writeTodoList(markdown, signal) {
      const query =
        "INSERT INTO todo_list (id, content) VALUES (1, :content) ON CONFLICT DO UPDATE SET content = excluded.content";
      await run([{ queryType: "run", query, params: { content: redact(markdown) } }], signal);
    },
    ...todoReaders(read),
    close: () => local.close(),
  };
}

const nothing: SqliteRows = { columns: [], rows: [], rowsAffected: 0 };
const reading = new Set(["SELECT", "VALUES", "EXPLAIN", "PRAGMA"]);
const changing = new Set(["INSERT", "REPLACE", "UPDATE", "DELETE"]);

function typeOf(query: string, verb: string): SqliteStatement["queryType"] {
  const words = wordsOf(query);
  if (reading.has(verb)) return "query";
  const isChange = changing.has(verb) || (verb === "WITH" && words.some((word) => changing.has(word)));
  // A statement with RETURNING is run as a query, even if it changes rows.
  if (isChange) return words.includes("RETURNING") ? "query" : "run";
  return verb === "WITH" ? "query" : "exec";
}

/** Set only for statements that begin with WITH. */
function wroteOf({ sql, verb }: Statement): StatementResult["wrote"] {
  const word = verb === "WITH" ? wordsOf(sql).find((one) => changing.has(one)) : undefined;
  return word === undefined ? undefined : word === "UPDATE" ? "update" : word === "DELETE" ? "delete" : "insert";
}

const refused: Readonly<Record<string, string>> = {
  ATTACH: "other database files cannot be reached",
  DETACH: "other database files cannot be reached",
  VACUUM: "other database files cannot be reached",
  ...Object.fromEntries(
    ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].map((verb) => [
      verb,
      "several statements in one query take effect together without it",
    ]),
  ),
};
const harmlessPragmas =
  /^\s*PRAGMA\s+(?:table_(?:x?info|list)|index_(?:list|x?info)|foreign_key_list|quick_check)\b(?!\s*=)/i;

function requireHarmless({ sql, verb }: Statement): void {
  const reason = refused[verb];
  if (reason !== undefined) throw new ToolError(`${verb} is not available here: ${reason}.`);
  if (verb === "PRAGMA" && !harmlessPragmas.test(sql)) throw new ToolError("This PRAGMA is not available here.");
  if (wordsOf(sql).includes("LOAD_EXTENSION"))
    throw new ToolError("The function load_extension is not available here.");
}

const namesTodos = (query: string): boolean => /\btodo(?:s|_deps)\b/i.test(query);

function resultOf(answer: SqliteRows, verb: string, limits: Limits): StatementResult {
  const { rows, rowsAffected, lastInsertRowid = 0 } = answer;
  const columns = answer.columns.length > 0 ? answer.columns : Object.keys(rows[0] ?? {});
  const shown: (string | null)[][] = [];
  let characters = 0;
  for (const row of rows) {
    const cells = columns.map((column) => cell(row[column], limits));
    characters += cells.reduce((sum, text) => sum + (text?.length ?? 4) + 3, 0);
    if (shown.length >= limits.rows || (characters > limits.characters && shown.length > 0)) break;
    shown.push(cells);
  }
  return {
    verb,
    wrote: undefined,
    columns,
    rows: shown,
    leftOut: rows.length - shown.length,
    isCountCut: false,
    changes: rowsAffected,
    lastRowId: String(lastInsertRowid),
  };
}

function cell(value: unknown, { valueCharacters }: Limits): string | null {
  if (value === null || value === undefined) return null;
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.length > valueCharacters ? `${text.slice(0, valueCharacters)}…` : text;
}
