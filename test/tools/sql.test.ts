import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { databaseProgram } from "../../src/tools/database/program.ts";
import {
  type SessionDatabase,
  type SessionDatabaseOptions,
  sessionDatabase,
} from "../../src/tools/database/session-database.ts";
import { splitStatements, withQuoted } from "../../src/tools/database/split-statements.ts";
import { sql } from "../../src/tools/database/sql.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { HANG_MS, processorTime } from "../support/work.ts";
import { contentOf, contextFor, failureOf, workspace } from "./workspace.ts";

interface Opened {
  readonly database: SessionDatabase;
  readonly context: ToolContext;
  readonly path: string;
  readonly changes: () => number;
}

function opened(more: Partial<SessionDatabaseOptions> = {}): Opened {
  const { root } = workspace();
  const path = join(root, "session.db");
  let changes = 0;
  const onTodosChanged = (): void => void changes++;
  const database = sessionDatabase({ path, disk: nodeDisk, onTodosChanged, ...more });
  onTestFinished(() => database.close());
  return { database, context: { ...contextFor(root), database }, path, changes: () => changes };
}

const run = (query: string, { context }: Opened): Promise<string> =>
  contentOf(sql, { query, description: "" }, context);
const fail = (query: string, { context }: Opened, database = "session") =>
  failureOf(sql, { query, description: "", database }, context);

describe("the texts of the wire contract", () => {
  test("the sql tool answers one statement of each kind with the texts of the wire contract", async () => {
    const it = opened();
    expect(await run("INSERT INTO todos (id, title) VALUES ('a', 'First')", it)).toBe(
      "1 row(s) inserted. Last inserted row ID: 1.",
    );
    expect(await run("UPDATE todos SET status = 'done' WHERE id = 'a'", it)).toBe("1 row(s) updated.");
    expect(await run("UPDATE todos SET status = 'done' WHERE id = 'z'", it)).toBe("0 row(s) updated.");
    expect(await run("DELETE FROM todos", it)).toBe("1 row(s) deleted.");
    expect(await run("CREATE TABLE notes (n INTEGER, t TEXT)", it)).toBe("Schema operation completed successfully.");
    expect(await run("WITH x(n) AS (VALUES (1), (2)) INSERT INTO notes SELECT n, 'x' FROM x", it)).toBe(
      "2 row(s) inserted. Last inserted row ID: 2.",
    );
    expect(await run("SELECT * FROM notes WHERE n > 5", it)).toBe("No rows.");
    expect(await run("INSERT INTO notes VALUES (NULL, 'a|b' || char(10) || 'c') RETURNING *", it)).toBe(
      "1 row(s) inserted.\nn | t\nNULL | a\\|b\\nc\n(1 row)",
    );
    expect(await run("DROP TABLE notes;", it)).toBe("Schema operation completed successfully.");
  });

  test("several statements are numbered", async () => {
    const it = opened();
    const query = `INSERT INTO todos (id, title) VALUES ('a', 'x;y'); -- the first;
      INSERT INTO todos (id, title) VALUES ('b', 'z');
      INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'a');
      SELECT id, status FROM todos ORDER BY id;`;
    expect(await run(query, it)).toBe(
      [
        "Executed 4 statement(s):",
        "1. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.",
        "2. INSERT\n   1 row(s) inserted. Last inserted row ID: 2.",
        "3. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.",
        "4. SELECT\n   id | status\n   a | pending\n   b | pending\n   (2 rows)",
      ].join("\n\n"),
    );
  });
});

test("the query for ready todos returns only todos without an open dependency", async () => {
  const it = opened();
  await run(
    `INSERT INTO todos (id, title, status) VALUES ('a', 'A', 'done'), ('b', 'B', 'pending'), ('c', 'C', 'pending');
     INSERT INTO todo_deps VALUES ('b', 'a'), ('c', 'b')`,
    it,
  );
  const ready = `SELECT t.id FROM todos t WHERE t.status = 'pending' AND NOT EXISTS (
    SELECT 1 FROM todo_deps d JOIN todos o ON o.id = d.depends_on WHERE d.todo_id = t.id AND o.status != 'done')`;
  expect(await run(ready, it)).toBe("id\nb\n(1 row)");
  expect(await it.database.readTodos()).toEqual([
    { id: "a", title: "A", description: "", status: "done", createdAt: expect.stringMatching(/^\d{4}-/) },
    { id: "b", title: "B", description: "", status: "pending", createdAt: expect.stringMatching(/^\d{4}-/) },
    { id: "c", title: "C", description: "", status: "pending", createdAt: expect.stringMatching(/^\d{4}-/) },
  ]);
});

test("the sql tool reports changed todos exactly when a statement changes them", async () => {
  const it = opened();
  const after = async (query: string): Promise<number> => {
    await run(query, it);
    return it.changes();
  };
  expect(await after("SELECT * FROM todos")).toBe(0);
  expect(await after("CREATE TABLE other (x)")).toBe(0);
  expect(await after("INSERT INTO other SELECT 1")).toBe(0);
  expect(await after("INSERT INTO todos (id, title) VALUES ('a', 'A')")).toBe(1);
  expect(await after("UPDATE todos SET status = 'done' WHERE id = 'nobody'")).toBe(1);
  expect(await after("SELECT 1; UPDATE todos SET status = 'done'; SELECT 2")).toBe(2);
  expect(await after("INSERT INTO todo_deps VALUES ('a', 'b')")).toBe(3);
  await fail("INSERT INTO todos (id, title) VALUES ('a', 'again')", it);
  expect(it.changes()).toBe(3);
  expect(await after("DROP TABLE todo_deps")).toBe(4);
  expect(await run("SELECT count(*) FROM todo_deps", it)).toContain("0");
});

describe("errors", () => {
  test("a failing statement undoes its neighbours", async () => {
    const it = opened();
    expect(await fail("INSERT INTO todos (id, title) VALUES ('a', 'A'); INSERT INTO nowhere VALUES (1)", it)).toEqual({
      code: "failure",
      message: "Statement 2 of 2 failed: no such table: nowhere. None of the statements took effect.",
    });
    expect(await run("SELECT * FROM todos", it)).toBe("No rows.");
    expect(await fail("SELEC 1", it)).toEqual({
      code: "failure",
      message: 'The statement failed: near "SELEC": syntax error.',
    });
    expect((await fail(" ; -- nothing", it)).message).toBe("The query contains no SQL statement.");
  });

  test("a transaction is the model's own, but does not outlive its query", async () => {
    const it = opened();
    await run("BEGIN; INSERT INTO todos (id, title) VALUES ('a', 'A'); COMMIT", it);
    expect((await fail("BEGIN; DELETE FROM todos", it)).message).toContain("end it with COMMIT");
    expect(await run("SELECT id FROM todos", it)).toBe("id\na\n(1 row)");
  });

  test("the sql tool refuses statements that reach outside the database", async () => {
    const attacks = [
      ["ATTACH 'other.db' AS other", "ATTACH"],
      ["VACUUM INTO 'copy.db'", "VACUUM"],
      ["DETACH main", "DETACH"],
      ["PRAGMA writable_schema = ON", "PRAGMA writable_schema"],
      ["PRAGMA journal_mode = OFF", "PRAGMA journal_mode"],
      ["PRAGMA temp_store_directory = '/'", "PRAGMA temp_store_directory"],
      ["SELECT load_extension('/tmp/evil.so')", "load_extension"],
      ["SELECT readfile('/etc/passwd')", "readfile"],
      ["SELECT writefile('evil', 'x')", "writefile"],
      ["CREATE VIRTUAL TABLE f USING csv(filename='/etc/passwd')", "csv"],
      ["INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, '')", "sqlite_master"],
    ] as const;
    const it = opened();
    for (const [query, named] of attacks) expect((await fail(query, it)).message).toContain(named);
    expect(readdirSync(join(it.path, "..")).filter((name) => !name.startsWith("session.db"))).toEqual([]);
  });
});

describe("bounds", () => {
  test("many rows are counted, not shown", async () => {
    const it = opened();
    const numbers = (count: number): string =>
      `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ${count}) SELECT x FROM c`;
    const text = await run(numbers(1234), it);
    expect(text.split("\n").length).toBe(202);
    expect(text).toContain("\n200\n[1034 more rows not shown; narrow the query or use LIMIT and OFFSET]");
    expect(await run(numbers(1_000_000_000), it)).toContain("[at least 100000 more rows not shown;");
    const wide = await run("SELECT printf('%.*c', 100000, 'x') AS wide UNION ALL SELECT 'y'", it);
    expect(wide.length).toBeLessThan(20_000);
    expect(
      await run("CREATE TABLE big AS SELECT printf('%.*c', 900, 'x') AS x FROM json_each(json_array(1,2))", it),
    ).toBe("Schema operation completed successfully.");
    const rows = await run(
      "SELECT x FROM big, (SELECT 1 UNION ALL SELECT 2), json_each(json_array(1,2,3,4,5,6,7,8,9,10))",
      it,
    );
    expect(rows.length).toBeLessThanOrEqual(20_000);
    expect(rows).toContain("more rows not shown");
  });

  test("a query without an end is stopped, and the event loop never waits for it", async () => {
    const it = opened({ timeoutMs: 2000 });
    await run("INSERT INTO todos (id, title) VALUES ('a', 'kept')", it);
    let turns = 0;
    const beat = setInterval(() => void turns++, 10);
    const started = performance.now();
    const endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    const [failure, sibling] = await Promise.all([fail(endless, it), run("SELECT title FROM todos", it)]);
    clearInterval(beat);
    expect(failure).toEqual({ code: "timeout", message: expect.stringContaining("took longer than 2 s") });
    expect(sibling).toBe("title\nkept\n(1 row)");
    expect(performance.now() - started).toBeLessThan(HANG_MS);
    // At best two hundred in this time; one or two if the loop waited for the query.
    expect(turns).toBeGreaterThan(10);
  });

  test("a query that wants too much memory or too large a file fails alone", async () => {
    const it = opened();
    expect((await fail("SELECT length(zeroblob(1000000000))", it)).message).toContain("too big");
    const hungry =
      "CREATE TABLE b AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT randomblob(3000000) AS v FROM c";
    expect((await fail(hungry, it)).message).toMatch(/full|memory|longer than/);
    expect(await run("SELECT 1 AS one", it)).toBe("one\n1\n(1 row)");
  });

  test("abort stops a query at once", async () => {
    const it = opened();
    const stop = new AbortController();
    const endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    const pending = it.database.execute({ sql: endless, database: "session", signal: stop.signal });
    setTimeout(() => stop.abort(new Error("stopped")), 300);
    await expect(pending).rejects.toThrow("stopped");
    expect(await run("SELECT 1 AS one", it)).toContain("1");
  });

  test("the sql tool refuses statements after the session database was closed", async () => {
    const it = opened();
    await run("SELECT 1", it);
    await it.database.close();
    expect((await fail("SELECT 1", it)).message).toBe("The database of this session is closed.");
  });
});

describe("the file", () => {
  test("the session database is readable by its owner only, and its content persists", async () => {
    const it = opened({ idleMs: 50 });
    await run("INSERT INTO todos (id, title) VALUES ('a', 'kept')", it);
    if (process.platform !== "win32") expect(statSync(it.path).mode & 0o777).toBe(0o600);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await run("SELECT title FROM todos", it)).toBe("title\nkept\n(1 row)");
    const again = sessionDatabase({ path: it.path, disk: nodeDisk });
    onTestFinished(() => again.close());
    expect(await again.readTodos()).toHaveLength(1);
  });

  test("a session database in memory keeps its data through an idle period", async () => {
    const it = opened({ path: ":memory:", idleMs: 10 });
    await run("INSERT INTO todos (id, title) VALUES ('a', 'kept')", it);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await run("SELECT title FROM todos", it)).toContain("kept");
  });
});

describe("the store of past sessions", () => {
  let storePath: string;
  let remove: () => void;
  beforeAll(() => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-store-"));
    remove = () => rmSync(folder, { recursive: true, force: true });
    storePath = join(folder, "index.db");
    const store = new DatabaseSync(storePath);
    store.exec("CREATE TABLE session (id TEXT, summary TEXT); INSERT INTO session VALUES ('s1', 'first')");
    store.close();
  });
  afterAll(() => remove());

  test("the store of past sessions can be read and not written", async () => {
    const it = opened({ past: { path: storePath, refresh: async () => ({ left: 0 }) } });
    const query = { query: "SELECT id FROM session", description: "", database: "session_store" };
    expect(await contentOf(sql, query, it.context)).toBe("id\ns1\n(1 row)");
    for (const attack of [
      "DELETE FROM session",
      "DROP TABLE session",
      "PRAGMA query_only = OFF",
      "CREATE TEMP TABLE x (y)",
      "ATTACH 'x.db' AS x",
      "WITH x AS (SELECT 1) DELETE FROM session",
    ]) {
      expect((await fail(attack, it, "session_store")).message).toContain("can only be read");
    }
    expect((await fail("SELECT 1; SELECT 2", it, "session_store")).message).toContain("one SELECT at a time");
  });

  test("the sql tool reports that the session has no store of past sessions", async () => {
    expect((await fail("SELECT 1", opened(), "session_store")).message).toContain("no store of past sessions");
  });
});

describe("splitting of statements", () => {
  test.each([
    ["SELECT 1", ["SELECT 1"]],
    ["SELECT ';' ; SELECT \"a;b\", [c;d], `e;f`;", ["SELECT ';'", 'SELECT "a;b", [c;d], `e;f`']],
    ["/* ; */ SELECT 1 -- ;\n; SELECT 2", ["/* ; */ SELECT 1 -- ;", "SELECT 2"]],
    ["SELECT 'it''s; fine'; ;;", ["SELECT 'it''s; fine'"]],
    [
      "CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT CASE 1 WHEN 1 THEN 2 END; END; SELECT 3",
      ["CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT CASE 1 WHEN 1 THEN 2 END; END", "SELECT 3"],
    ],
    ["", []],
    ["SELECT 'unfinished; ", ["SELECT 'unfinished;"]],
  ])("the sql tool splits statements: %s", (text, statements) => {
    expect(splitStatements(text)).toEqual(statements);
  });

  test("statements are split in time that grows linearly with the text", () => {
    const spent = processorTime();
    for (const unit of ["'", '"', "/*", "--", "[", ";", "a'", "/**", "BEGIN "]) splitStatements(unit.repeat(60_000));
    expect(spent()).toBeLessThan(2000);
  });
});

test("a killed parent leaves no process behind", async () => {
  const sqlite = createRequire(import.meta.url).resolve("@photostructure/sqlite");
  const program = databaseProgram(sqlite);
  const limits = {
    rows: 1,
    characters: 1,
    valueCharacters: 1,
    countedRows: 1,
    valueBytes: 1e6,
    memoryBytes: 1e8,
    pages: 100,
  };
  const statements = [
    { sql: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c", verb: "WITH" },
  ];
  const request = { database: "session", path: ":memory:", schema: "", statements, watched: [], limits };
  const parent = spawn(process.execPath, [
    "-e",
    `const child = require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(program)}], { stdio: ["ignore", "ignore", "ignore", "ipc"], serialization: "advanced" });
     child.send(${JSON.stringify(request)}, () => console.log(child.pid)); setInterval(() => {}, 1000);`,
  ]);
  const pid = Number(
    await new Promise<string>((resolve) => parent.stdout.once("data", (data) => resolve(String(data)))),
  );
  expect(isAlive(pid)).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 300));
  parent.kill("SIGKILL");
  await expect.poll(() => isAlive(pid)).toBe(false);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("secrets", () => {
  const SECRET = "Zk9vYmFyQ2FuYXJ5L1ZhbHVl+Xyz123";
  const redactor = createRedactor({ values: [{ name: "KEY", value: SECRET }] });
  const redact = (text: string): string => redactor.text(text);

  test("E02: secrets are masked in the database in every notation, and a query with the secret finds the masked text", async () => {
    const stage = opened({ redact });
    await run(
      `CREATE TABLE notes (text TEXT, "${SECRET}" TEXT /* ${SECRET} */);
       INSERT INTO notes (text) VALUES ('it''s ${SECRET}; or so'), ('${SECRET}'), (x'${Buffer.from("hi").toString("hex")}');
       INSERT INTO todos (id, title) VALUES ('a', 'use ${SECRET}') -- ${SECRET}`,
      stage,
    );
    await stage.database.writeTodoList(`- [ ] send ${SECRET}`, new AbortController().signal);
    expect(await run(`SELECT text FROM notes WHERE text LIKE '%${SECRET}%'`, stage)).toBe(
      "text\nit's [redacted:KEY]; or so\n[redacted:KEY]\n(2 rows)",
    );
    expect(await stage.database.readTodoList()).toBe("- [ ] send [redacted:KEY]");
    await stage.database.close();
    expect(readFileSync(stage.path).includes(SECRET)).toBe(false);
  });

  test("quoted text is changed without a change of the statements around it", () => {
    const change = (text: string): string => text.replaceAll("S", "']\"`--");
    for (const text of ["'S'", '"S"', "`S`", "[S]", "-- S\n", "/* S */", "'S", "x'00'", "SELECT S;"]) {
      const changed = withQuoted(`${text} ; SELECT 1`, change);
      expect(splitStatements(changed)).toHaveLength(splitStatements(`${text} ; SELECT 1`).length);
    }
    const plain = "SELECT 'it''s', \"a\"\"b\", [c], `d` -- e\n/* f */ / 2 - 1";
    expect(withQuoted(plain, (text) => text)).toBe(plain);
  });
});
