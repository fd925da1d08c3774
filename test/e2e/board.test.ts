/** The context board through the built program: in a person's hands, and in those of a process nobody waits for. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { consolidateAtShutdown } from "../../src/runtime/knowledge/shutdown-consolidation.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";
import { type Finished, script, troupe } from "../support/troupe.ts";
import { HANG_MS } from "../support/work.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let cwd: string;
let count = 0;
const newHome = (): string => join(folder.path, `home-${++count}`);

beforeAll(async () => {
  folder = await tempFolder();
  cwd = join(folder.path, "project");
  mkdirSync(cwd);
});
afterAll(() => folder[Symbol.asyncDispose]());

const board = (home: string, ...args: string[]): Promise<Finished> => troupe(["board", ...args], { cwd, home });
const rowsOf = async (home: string): Promise<Record<string, unknown>[]> =>
  JSON.parse((await board(home, "list", "--json")).stdout);
const call = (given: object): object => ({ calls: [{ name: "context_board", arguments: given }] });
const add = (name: string): object =>
  call({ command: "add", name, description: `About ${name}`, context: `All about ${name}.` });

describe("troupe board", () => {
  it("troupe board adds, shows, lists, prunes, and takes back", async () => {
    const home = newHome();
    expect(await board(home, "list")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/branch default: 0 of 25 items/),
    });
    expect(await board(home, "add", "style", "Tabs, not spaces. Always.")).toMatchObject({
      code: 0,
      stdout: "Added: style\n",
    });
    expect(await board(home, "add", "build", "Run make.\nTwice.", "--description", "How to build")).toMatchObject({
      code: 0,
    });
    expect((await board(home, "show", "style")).stdout).toMatch(
      /written by +you\nabout +Tabs, not spaces\.\n[\s\S]*\n\nTabs, not spaces\. Always\.\n$/,
    );
    expect(await rowsOf(home)).toMatchObject([
      { src: "user", name: "build", description: "How to build", readCount: 0, count: 0 },
      { src: "user", name: "style" },
    ]);
    expect((await board(home, "prune", "build")).stdout).toMatch(
      /Pruned: build\. To have it back: troupe board restore 3/,
    );
    expect((await board(home, "restore")).stdout).toMatch(
      /as before change 3[\s\S]*\+ user\/build\n {2}\+ How to build\n {2}\+ Run make\.\n {2}\+ Twice\./,
    );
    expect((await board(home, "changes")).stdout).toMatch(
      /restore of 3 by person[\s\S]*prune by person {2}\(undone by 4\)/,
    );
    expect(await rowsOf(home)).toHaveLength(2);
    expect((await board(home, "list", "--all")).stdout).toMatch(/^local:.*project, branch default: 2 items\n$/);
  });

  const mistakes: readonly (readonly [readonly string[], number, RegExp])[] = [
    [["show", "styel"], 2, /no note called "styel".*Did you mean style\?/],
    [["show"], 2, /Usage: troupe board show <name>/],
    [["add", "x"], 2, /Usage: troupe board add/],
    [["add", "Not Kebab", "text"], 2, /lower-case words/],
    [["add", "login", `token ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`], 2, /contains a secret/],
    [["prune", "--all"], 2, /To confirm, add --yes/],
    [["restore", "77"], 2, /There is no change 77/],
    [["restore", "last"], 2, /A change is a number/],
    [["paint"], 2, /Unknown: troupe board paint/],
    [["consolidate"], 2, /No session has worked in this folder/],
  ];

  it("troupe board reports a mistake in one line", async () => {
    const home = newHome();
    await board(home, "add", "style", "Tabs.");
    const ends = await Promise.all(mistakes.map(([args]) => board(home, ...args)));
    for (const [index, [args, code, words]] of mistakes.entries()) {
      const { stderr = "", ...ended } = ends[index] ?? {};
      expect([args, ended]).toEqual([args, { code, stdout: "" }]);
      expect(stderr).toMatch(words);
      expect(stderr.trim().split("\n")).toHaveLength(1);
    }
  });

  it("troupe board names the repository of notes that a folder had before it was trusted", async () => {
    const home = newHome();
    const own = join(folder.path, "clone");
    mkdirSync(join(own, ".git"), { recursive: true });
    writeFileSync(join(own, ".git", "HEAD"), "ref: refs/heads/main\n");
    writeFileSync(join(own, ".git", "config"), '[remote "origin"]\n\turl = https://example.com/house/garden.git\n');
    const at = (...args: string[]) => troupe(["board", ...args], { cwd: own, home });
    await at("add", "style", "Tabs.");
    const listed = await at("list", "--trust-folder");
    expect(listed.stdout).toBe("example.com/house/garden, branch main: 0 of 25 items\n");
    const [, name = ""] = /--repository '([^']+)'/.exec(listed.stderr) ?? [];
    expect((await at("list", "--trust-folder", "--repository", name)).stdout).toContain("style");
  });

  it("troupe board is refused inside a command of an agent", async () => {
    const home = newHome();
    const inside = await troupe(["board", "add", "x", "y"], { cwd, home, environment: { TROUPE_SHELL: "1" } });
    expect([inside.code, inside.stderr]).toEqual([1, expect.stringContaining("of an agent cannot change")]);
  });

  it("troupe board consolidates on demand, with a diff and an undo, in a session that is never resumed", async () => {
    const home = newHome();
    await board(home, "add", "style", "Tabs.");
    const talk = script(folder.path, [{ say: "Tests run with make check." }]);
    const first = await troupe(["-p", "How are tests run?", "--model", talk], { cwd, home });
    expect(first.code).toBe(0);
    const before = await rowsOf(home);
    const rem = script(folder.path, [add("test-command"), { say: "done" }]);
    const ended = await board(home, "consolidate", "--model", rem);
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    expect(ended.stdout).toMatch(
      /^1 item added \(test-command\)\. To take it back: troupe board restore 2\n\+ agent\/test-command\n/,
    );
    expect(await rowsOf(home)).toMatchObject([{ name: "test-command", src: "agent" }, { name: "style" }]);
    expect((await board(home, "restore", "2")).code).toBe(0);
    expect(await rowsOf(home)).toEqual(before);
    const again = await troupe(["-p", "And now?", "--continue", "--model", talk], { cwd, home });
    const store = jsonlStore({ root: home, disk: nodeDisk, stamp: systemStamp });
    const own = (await store.list()).filter(({ detachedFrom }) => detachedFrom === undefined);
    expect([again.code, own.length]).toEqual([0, 1]);
    expect((await troupe(["sessions", "list"], { cwd, home })).stdout).toContain(
      `(consolidation of ${own[0]?.sessionId})`,
    );
  });
});

describe("--agent rem-agent", () => {
  it("--agent rem-agent is an error, because that agent is reserved for troupe", async () => {
    const home = newHome();
    const ended = await troupe(["--agent", "rem-agent", "-p", "x", "--model", "understudy"], {
      cwd,
      home,
      environment: { COPILOT_SUBCONSCIOUS: "on" },
    });
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("cannot be chosen")]);
  });
});

describe("the end of a session with the board", () => {
  it("MEM-41 MEM-44 ORC-81 the end of a session starts a process that adds the last turn to the board", async () => {
    const home = newHome();
    const environment = { PATH: process.env.PATH ?? "", HOME: home, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1" };
    const runtime = createRuntime({ environment: { ...environment, COPILOT_SUBCONSCIOUS: "on" }, home });
    const talk = script(
      folder.path,
      ["one", "two", "three"].map((say) => ({ say })),
    );
    const session = await runtime.createSession({ cwd, model: { name: talk } });
    for (const prompt of ["first", "second", "the very last word"]) await session.sendAndWait({ prompt });
    const model = script(folder.path, [add("learned"), { say: "done" }]);
    // It starts when the test says so: to wait for its end would be to wait in vain.
    const start = join(home, "start");
    const gate = `for try in $(seq 600); do [ -e '${start}' ] && break; sleep 0.1; done; exec "$@"`;
    const program = ["/bin/sh", "-c", gate, "sh", process.execPath, resolve("bin/troupe.js")] as const;
    const began = performance.now();
    expect(await consolidateAtShutdown({ session, environment, program, model })).toBe("spawned");
    await session.close();
    await runtime.close();
    expect(performance.now() - began).toBeLessThan(HANG_MS);
    writeFileSync(start, "");
    const store = jsonlStore({ root: home, disk: nodeDisk, stamp: systemStamp });
    const child = await endedChild(store, session.id);
    const { events } = await store.read(child);
    expect(dataOf(events, "session.start")).toMatchObject([{ detachedFromSpawningParentSessionId: session.id }]);
    const [system] = dataOf(events, "system.message");
    expect(system?.content).toMatch(
      /<said_by_person turn="3">\nthe very last word\n[\s\S]*<said_by_agent turn="3">\nthree\n/,
    );
    expect(dataOf(events, "troupe.consolidation")).toMatchObject([{ outcome: "applied", added: ["learned"] }]);
    expect(await rowsOf(home)).toMatchObject([{ name: "learned", count: 0 }]);
    // The child is a session of one message with the flag on, and started nothing.
    expect(dataOf(events, "troupe.shutdown_consolidation")).toEqual([]);
    expect(await store.ids()).toHaveLength(2);
    expect(existsSync(join(home, "board.db"))).toBe(true);
  });
});

describe("the end of the program", () => {
  it("MEM-42 the end of the program does not wait for the consolidation that it started", async () => {
    const home = newHome();
    const talk = script(
      folder.path,
      ["one", "two", "three"].map((say) => ({ say })),
    );
    const surface = join(folder.path, "surface.mjs");
    const sleeper = join(folder.path, "sleeper.cjs");
    writeFileSync(sleeper, "setTimeout(() => undefined, 30_000);");
    writeFileSync(
      surface,
      `import { consolidateAtShutdown, createRuntime } from ${JSON.stringify(resolve("dist/lib/index.js"))};
       const runtime = createRuntime({ environment: process.env });
       const session = await runtime.createSession({ cwd: process.cwd(), model: { name: process.argv[2] } });
       for (const prompt of ["a", "b", "c"]) await session.sendAndWait({ prompt });
       const program = [process.execPath, process.argv[3]];
       const outcome = await consolidateAtShutdown({ session, environment: process.env, program });
       await session.close();
       await runtime.close();
       const { pid } = session.events.findLast(({ type }) => type === "troupe.shutdown_consolidation").data;
       console.log(JSON.stringify({ outcome, pid }));`,
    );
    const environment = { HOME: home, TROUPE_HOME: home, COPILOT_SUBCONSCIOUS: "on", TROUPE_NO_DISCOVERY: "1" };
    const ended = spawnSync(process.execPath, [surface, talk, sleeper], {
      cwd,
      env: { PATH: process.env.PATH, ...environment },
      encoding: "utf8",
      timeout: 120_000,
    });
    expect([ended.status, ended.signal, ended.stderr]).toEqual([0, null, ""]);
    const { outcome, pid } = JSON.parse(ended.stdout) as { outcome: string; pid: number };
    try {
      expect(outcome).toBe("spawned");
      expect(process.kill(pid, 0)).toBe(true);
    } finally {
      process.kill(pid, "SIGKILL");
    }
  });
});

/** The id of the session that works for this one, once it has ended. */
async function endedChild(store: ReturnType<typeof jsonlStore>, parent: string): Promise<string> {
  for (const end = performance.now() + HANG_MS; performance.now() < end; ) {
    const child = (await store.ids()).find((id) => id !== parent);
    const events = child === undefined ? [] : (await store.read(child).catch(() => ({ events: [] }))).events;
    if (child !== undefined && events.some(({ type }) => type === "session.shutdown")) return child;
    await pause(25);
  }
  throw new Error("the child did not come to its end");
}
