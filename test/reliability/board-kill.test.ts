/** A consolidation, killed wherever it writes: the board is as before or as after, and what was applied can be undone. */
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Board, BoardRow } from "../../src/context/board/board.ts";
import { boardKey } from "../../src/context/board/board-key.ts";
import { openBoard } from "../../src/context/board/open.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { buildProgram, type Ended, run } from "../board/build.ts";
import { fill, optionsFor, PERSON, text } from "../board/stage.ts";
import { script } from "../support/troupe.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
const canPreload = process.platform === "linux" && existsSync("/usr/bin/cc");

let folder: Awaited<ReturnType<typeof tempFolder>>;
let program: string;
let cwd: string;
/** The state root before, with the session that is consolidated; and after, once. */
let fixture: string;
let sessionId: string;
let model: string;
let before: readonly BoardRow[];
let after: readonly BoardRow[];
/** What a whole run writes, by SQL statement; and where the one transaction of its change begins and ends, from 1. */
let statements: readonly string[];
let [begin, commit] = [0, 0];
let count = 0;

/** A full board, so that what the rule removes is part of the change. */
beforeAll(async () => {
  folder = await tempFolder();
  [program, cwd, fixture] = ["consolidate.mjs", "work", "fixture"].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(cwd);
  const building = buildProgram("test/board/consolidate-program.ts", program, { counted: true });
  const runtime = createRuntime({ environment: { HOME: fixture, TROUPE_SANDBOX: "off" }, home: fixture });
  const session = await runtime.createSession({
    cwd,
    model: { name: script(folder.path, [{ say: "Tests run with make check." }]) },
  });
  sessionId = session.id;
  await session.sendAndWait({ prompt: "How are tests run?" });
  await session.close();
  await runtime.close();
  await withBoard(fixture, async (board) => {
    await fill(board, 23);
    await board.add("user", text("mine"), PERSON);
    await board.expose();
    for (const name of ["item-1", "item-2", "item-3"]) await board.read("agent", name);
    before = await board.rows();
  });
  const call = (given: object): object => ({ calls: [{ name: "context_board", arguments: given }] });
  const add = (name: string, context: string): object =>
    call({ command: "add", name, description: `About ${name}`, context });
  model = script(folder.path, [
    add("test-command", "make check"),
    add("item-1", "x".repeat(3900)),
    call({ command: "prune", name: "item-2" }),
    { say: "done" },
  ]);
  await building;
  const home = newHome();
  const ended = await act("consolidate", home);
  expect(ended.errors).toBe("");
  statements = JSON.parse(ended.output);
  const record = statements.findIndex((sql) => sql.startsWith("INSERT INTO board_changes"));
  [begin, commit] = [statements.lastIndexOf("BEGIN IMMEDIATE", record) + 1, statements.indexOf("COMMIT", record) + 1];
  after = await withBoard(home, (board) => board.rows());
  expect([before.length, after.length]).toEqual([24, 18]);
});
afterAll(() => folder[Symbol.asyncDispose]());

function newHome(): string {
  const home = join(folder.path, `home-${++count}`);
  cpSync(fixture, home, { recursive: true });
  return home;
}

function act(action: "consolidate" | "restore", home: string, environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return run(program, [action, home, cwd, sessionId, model], environment);
}

async function withBoard<T>(home: string, look: (board: Board) => Promise<T>): Promise<T> {
  const notices: string[] = [];
  const key = boardKey(cwd, { isTrusted: false });
  const board = openBoard(optionsFor(home, { key, onNotice: (notice) => notices.push(notice) }));
  try {
    return await look(board);
  } finally {
    await board.close();
    expect(notices).toEqual([]);
  }
}

/** What a consolidation wrote has the time of its own run; all else is compared to the byte. */
function timeless(rows: readonly BoardRow[]): readonly BoardRow[] {
  const known = new Set(before.flatMap(({ createdAt, updatedAt }) => [createdAt, updatedAt]));
  const time = (at: string): string => (known.has(at) ? at : "later");
  return rows.map((row) => ({ ...row, createdAt: time(row.createdAt), updatedAt: time(row.updatedAt) }));
}

/** Before or after, nothing between; what was applied is undone to the byte; and the board can be used. */
async function checked(home: string): Promise<"before" | "after"> {
  return withBoard(home, async (board) => {
    const rows = await board.rows();
    const [last] = await board.changes();
    const isApplied = last?.action === "consolidate";
    expect(timeless(rows)).toEqual(isApplied ? timeless(after) : before);
    if (isApplied) {
      await board.restore(PERSON);
      expect(await board.rows()).toEqual(before);
    }
    await board.prune("agent", "item-5", { ...PERSON, action: "prune" });
    expect(await board.add("agent", text("item-6", { content: "New." }), PERSON)).toBe("replaced");
    return isApplied ? "after" : "before";
  });
}

/** Two processes at a time. */
async function each<T>(points: readonly T[], work: (point: T) => Promise<void>): Promise<void> {
  const left = [...points];
  const worker = async (): Promise<void> => {
    for (let point = left.shift(); point !== undefined; point = left.shift()) await work(point);
  };
  await Promise.all([worker(), worker()]);
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

describe("a consolidation killed by signal 9", () => {
  it("a consolidation killed between its statements leaves the board as before or as after", {
    timeout: 300_000,
  }, async () => {
    const all = statements.flatMap((_, index) => [`${index + 1}`, `${index + 1}+`]);
    const few = [`${begin}+`, `${begin + 1}+`, `${begin + 4}`, `${commit - 2}+`, `${commit}`, `${commit}+`];
    const found = new Map<string, string>();
    await each(slow ? all : few, async (point) => {
      const home = newHome();
      const ended = await act("consolidate", home, { KILL_STATEMENT: point });
      expect([point, ended.signal]).toEqual([point, "SIGKILL"]);
      found.set(point, await checked(home));
    });
    for (const point of few)
      expect([point, found.get(point)]).toEqual([point, point === `${commit}+` ? "after" : "before"]);
  });

  it.runIf(slow && canPreload)(
    "a consolidation killed at any write, whole or torn, leaves the board as before or as after",
    { timeout: 1_800_000 },
    async () => {
      const shim = join(folder.path, "shim.so");
      execFileSync("/usr/bin/cc", ["-shared", "-fPIC", "-O1", "-o", shim, "test/board/kill-shim.c", "-ldl"]);
      for (const action of ["consolidate", "restore"] as const) {
        const found = { before: 0, after: 0 };
        const counter = join(folder.path, `count-${action}`);
        const home = newHome();
        const start = async (at: string): Promise<void> => {
          if (action === "restore") expect((await act("consolidate", at)).errors).toBe("");
        };
        await start(home);
        await act(action, home, { LD_PRELOAD: shim, KILL_ROOT: home, KILL_COUNT: counter });
        const writes = Number(readFileSync(counter, "utf8"));
        expect(writes).toBeGreaterThan(20);
        const points = upTo(writes).flatMap((at) => [
          { at, how: "before" },
          { at, how: "torn" },
        ]);
        await each(points, async ({ at, how }) => {
          const root = newHome();
          await start(root);
          const killing = { LD_PRELOAD: shim, KILL_ROOT: root, KILL_AT: String(at), KILL_HOW: how };
          const ended = await act(action, root, killing);
          // Who writes a little less this time comes to its end.
          if (ended.signal !== null) expect(ended.signal).toBe("SIGKILL");
          found[action === "consolidate" ? await checked(root) : await restored(root)]++;
        });
        console.info(
          `${action}: ${writes} writes, ${points.length} kills: ${found.before} before, ${found.after} after`,
        );
        expect(Math.min(found.before, found.after)).toBeGreaterThan(0);
      }
    },
  );

  it("a consolidation killed with any part of its write-ahead log on disk leaves a whole board", async () => {
    // Right after its commit all of the change is in the log of writes, and nothing of it elsewhere.
    const left = newHome();
    // What was there before is in the file itself: what is cut off below is of this change alone.
    const seeded = new DatabaseSync(join(left, "board.db"));
    seeded.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    seeded.close();
    await act("consolidate", left, { KILL_STATEMENT: `${commit}+` });
    const whole = readFileSync(join(left, "board.db-wal"));
    expect(whole.length).toBeGreaterThan(4096 * 3);
    const found = { before: 0, after: 0 };
    const step = slow ? 64 : 4127;
    for (let length = 0; length <= whole.length + step; length += step) {
      const root = join(folder.path, `part-${++count}`);
      mkdirSync(root);
      copyFileSync(join(left, "board.db"), join(root, "board.db"));
      writeFileSync(join(root, "board.db-wal"), whole);
      truncateSync(join(root, "board.db-wal"), Math.min(length, whole.length));
      found[await checked(root)]++;
    }
    expect(Math.min(found.before, found.after)).toBeGreaterThan(0);
  });
});

/** The same for taking back: what a restore leaves is the board after the consolidation, or before it. */
async function restored(home: string): Promise<"before" | "after"> {
  return withBoard(home, async (board) => {
    const rows = await board.rows();
    const [last] = await board.changes();
    const isDone = last?.action === "restore";
    if (isDone) expect(rows).toEqual(before);
    else expect(timeless(rows)).toEqual(timeless(after));
    if (!isDone) await board.restore(PERSON);
    expect(await board.rows()).toEqual(before);
    return isDone ? "after" : "before";
  });
}
