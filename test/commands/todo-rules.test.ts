import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import fleetText from "../../src/commands/delegation/fleet.md";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { sessionDatabase } from "../../src/tools/database/session-database.ts";
import { TODO_RULES } from "../../src/tools/database/todo-rules.ts";

const TABLES = `
  CREATE TABLE IF NOT EXISTS todos (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT DEFAULT 'pending',
    created_at TEXT DEFAULT (datetime('now')), updated_at TEXT DEFAULT (datetime('now')));
  CREATE TABLE IF NOT EXISTS todo_deps (
    todo_id TEXT NOT NULL, depends_on TEXT NOT NULL, PRIMARY KEY (todo_id, depends_on));
`;

function opened(path = ":memory:") {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA trusted_schema = OFF");
  database.exec(TABLES + TODO_RULES);
  database.exec(TABLES + TODO_RULES); // as each request does
  return database;
}

/** The statements of the protocol, as the prompt gives them. */
const [, ready = ""] = /^ {3}(SELECT id, title FROM todos .*;)$/m.exec(fleetText) ?? [];
const [, claim = ""] = /(UPDATE todos SET status = 'in_progress'.*RETURNING id;)$/m.exec(fleetText) ?? [];
const claimOf = (id: string): string => claim.replace("<id>", id);

describe("ORC-69 todos of a fleet", () => {
  it("todos of a fleet are ready when all their dependencies are done", () => {
    const database = opened();
    database.exec(
      "INSERT INTO todos (id, title, status) VALUES ('a', 'A', 'done'), ('b', 'B', 'pending'), ('c', 'C', 'pending')",
    );
    database.exec("INSERT INTO todo_deps VALUES ('b', 'a'), ('c', 'b')");
    expect(database.prepare(ready).all()).toEqual([{ id: "b", title: "B" }]);
  });

  it("each todo of a fleet is claimed by one of many claimants with own connections", async () => {
    await using folder = await tempFolder();
    const workers = Array.from({ length: 8 }, () => opened(folder.at("session.db")));
    for (const id of ["a", "b", "c", "d"]) workers[0]?.exec(`INSERT INTO todos (id, title) VALUES ('${id}', '${id}')`);
    const claims = ["a", "b", "c", "d"].map((id) => workers.map((worker) => worker.prepare(claimOf(id)).all().length));
    expect(claims.map((won) => won.reduce((sum, one) => sum + one, 0))).toEqual([1, 1, 1, 1]);
    for (const worker of workers) worker.close();
  });

  it("todos of a fleet follow the same rules through the sql tool, and a claim counts as a change", async () => {
    let changes = 0;
    const database = sessionDatabase({ path: ":memory:", disk: nodeDisk, onTodosChanged: () => void changes++ });
    onTestFinished(() => database.close());
    const { signal } = new AbortController();
    const execute = (sql: string) => database.execute({ sql, database: "session", signal });
    await execute(TODO_RULES);
    await execute(
      "INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B'); INSERT INTO todo_deps VALUES ('b', 'a')",
    );
    const before = changes;
    expect((await execute(claimOf("a")))[0]?.rows).toEqual([["a"]]);
    expect((await execute(claimOf("a")))[0]?.rows).toEqual([]);
    expect(changes - before).toBe(1);
    await expect(execute("UPDATE todos SET status = 'in_progress' WHERE id = 'a'")).rejects.toThrow("already claimed");
    await expect(execute(claimOf("b"))).rejects.toThrow("not ready");
    await execute("UPDATE todos SET status = 'done' WHERE id = 'a'");
    expect((await execute(claimOf("b")))[0]?.rows).toEqual([["b"]]);
  });

  const refusals: [string, string, string][] = [
    [
      "a second claim without looking",
      "UPDATE todos SET status = 'in_progress' WHERE id = 'claimed'",
      "already claimed",
    ],
    ["a claim of what is done", "UPDATE todos SET status = 'in_progress' WHERE id = 'done'", "only a pending todo"],
    [
      "a claim of what is blocked",
      "UPDATE todos SET status = 'in_progress' WHERE id = 'blocked'",
      "only a pending todo",
    ],
    ["a claim before its time", "UPDATE todos SET status = 'in_progress' WHERE id = 'later'", "not ready"],
    ["a claim of all at once", "UPDATE todos SET status = 'in_progress'", "claim"],
    [
      "a claim by putting a row in its place",
      "INSERT OR REPLACE INTO todos (id, title, status) VALUES ('claimed', 'X', 'in_progress')",
      "claimed or ended",
    ],
    [
      "a status nobody knows",
      "UPDATE todos SET status = 'finished' WHERE id = 'claimed'",
      "pending, in_progress, done or",
    ],
    ["no status", "INSERT INTO todos (id, title, status) VALUES ('x', 'X', NULL)", "pending, in_progress, done or"],
  ];
  it.each(refusals)("todos of a fleet refuse %s", (_, sql, message) => {
    const database = filled();
    const before = database.prepare("SELECT id, status FROM todos ORDER BY id").all();
    expect(() => database.exec(sql)).toThrow(message);
    expect(database.prepare("SELECT id, status FROM todos ORDER BY id").all()).toEqual(before);
  });

  it.each([
    ["claimed", "done"],
    ["claimed", "blocked"],
    ["claimed", "pending"],
    ["done", "pending"],
    ["blocked", "pending"],
    ["free", "done"],
    ["free", "in_progress"],
  ])("todos of a fleet let %s become %s", (id, status) => {
    const database = filled();
    database.exec(`UPDATE todos SET status = '${status}' WHERE id = '${id}'`);
    expect(database.prepare("SELECT status FROM todos WHERE id = ?").all(id)).toEqual([{ status }]);
  });

  it("todos of a fleet may be listed again while some are claimed", () => {
    const database = filled();
    database.exec("INSERT OR IGNORE INTO todos (id, title) VALUES ('claimed', 'X'), ('new', 'N')");
    expect(database.prepare("SELECT id FROM todos WHERE status = 'in_progress'").all()).toEqual([{ id: "claimed" }]);
  });

  function filled() {
    const database = opened();
    database.exec(`INSERT INTO todos (id, title, status) VALUES
      ('claimed', 'C', 'in_progress'), ('done', 'D', 'done'), ('blocked', 'B', 'blocked'), ('free', 'F', 'pending'),
      ('later', 'L', 'pending')`);
    database.exec("INSERT INTO todo_deps VALUES ('later', 'claimed')");
    return database;
  }
});
