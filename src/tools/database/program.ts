/**
 * Code that runs in the database process. An endless query blocks its thread inside SQLite and cannot be interrupted.
 * So the process can be killed at any time, and it kills itself when its parent is gone.
 *
 * The functions are sent as source text, these and those of the `program-*.ts` files. They must not reference anything
 * outside themselves; dependencies are passed as arguments.
 */
import type * as Sqlite from "@photostructure/sqlite";
import type { DatabaseLimits, DatabaseReply, DatabaseRequest, OpenDatabase, StatementResult } from "./messages.ts";
import { accessRules } from "./program-access.ts";
import { copySessions, scopedCopies } from "./program-copies.ts";
import { readBounded, statementRunner } from "./program-statements.ts";

/** Source text that the parent process passes to the database process. */
interface ProgramData {
  readonly sqlite: string;
  readonly worker: string;
}

/** Returns the source text of the database process. `sqlite` is the path of the SQLite module. */
export function databaseProgram(sqlite: string): string {
  const parts: ServeParts = { accessRules, scopedCopies, copySessions, statementRunner, readBounded, requestHandler };
  const source = Object.entries(parts)
    .map(([name, part]: [string, () => unknown]) => `${name}: ${part.toString()}`)
    .join(",\n");
  const data: ProgramData = { sqlite, worker: `(${serve.toString()})(require, {${source}})` };
  return `(${supervise.toString()})(require, ${JSON.stringify(data)})`;
}

/** Main thread: passes messages between the parent process and the thread that may block. */
function supervise(require: NodeJS.Require, data: ProgramData): void {
  const { Worker } = require("node:worker_threads") as typeof import("node:worker_threads");
  const worker = new Worker(data.worker, { eval: true, workerData: data });
  const end = (): void => void process.kill(process.pid, "SIGKILL");
  worker.on("message", (reply: unknown) => process.send?.(reply));
  worker.on("error", end);
  process.on("message", (request: unknown) => worker.postMessage(request));
  process.on("disconnect", end);
}

/** The functions that the worker thread needs beside `serve`. */
interface ServeParts {
  readonly accessRules: typeof accessRules;
  readonly scopedCopies: typeof scopedCopies;
  readonly copySessions: typeof copySessions;
  readonly statementRunner: typeof statementRunner;
  readonly readBounded: typeof readBounded;
  readonly requestHandler: typeof requestHandler;
}

/** Worker thread: the only one that uses SQLite. */
function serve(require: NodeJS.Require, parts: ServeParts): void {
  const { parentPort, workerData } = require("node:worker_threads") as typeof import("node:worker_threads");
  const { DatabaseSync } = require((workerData as ProgramData).sqlite) as typeof Sqlite;
  const { refusalWhenReading, refusalOf } = parts.accessRules();
  const { run, recordWrite } = parts.statementRunner(parts.readBounded);
  const copyOf = parts.scopedCopies(openFile, parts.copySessions);
  const answer = parts.requestHandler(connect, run);
  const open = new Map<string, OpenDatabase>();

  parentPort?.on("message", (request: DatabaseRequest) => parentPort.postMessage(answer(request)));
  parentPort?.postMessage("started");

  function connect({ database, path, scope, schema, limits }: DatabaseRequest): OpenDatabase {
    const ALLOW = 0;
    const DENY = 1;
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
      else recordWrite(current, code, first);
      return refusal === undefined ? ALLOW : DENY;
    });
    return opened;
  }

  function openFile(path: string, limits: DatabaseLimits, readOnly: boolean): OpenDatabase {
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
}

/** Returns the function that runs a request. Several statements take effect together or not at all. */
function requestHandler(
  connect: (request: DatabaseRequest) => OpenDatabase,
  run: ReturnType<typeof statementRunner>["run"],
): (request: DatabaseRequest) => DatabaseReply {
  return answer;

  function answer(request: DatabaseRequest): DatabaseReply {
    let statement = 0;
    let opened: OpenDatabase | undefined;
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
        throw new Error("The transaction was not closed: end it with COMMIT in the same query");
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
}
