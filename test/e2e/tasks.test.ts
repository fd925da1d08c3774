/** The agents of a session after its process is gone, or while it is not: through the built program. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { handOver } from "../../src/runtime/sessions/hand-over.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let cwd: string;
let count = 0;
const newHome = (): string => join(folder.path, `home-${++count}`);

beforeAll(async () => {
  folder = await tempFolder();
  cwd = join(folder.path, "project");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "a.txt"), "alpha\n");
});
afterAll(() => folder[Symbol.asyncDispose]());

const start = (name: string, type: string, mode: "sync" | "background" = "background"): object => ({
  name: "task",
  arguments: { description: `do ${name}`, prompt: "work", agent_type: type, name, mode },
});
const eventsIn = (home: string): { type: string; agentId?: string }[] => {
  const [id = ""] = readdirSync(join(home, "session-state"));
  return readFileSync(join(home, "session-state", id, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; agentId?: string });
};
const doneByMain = (home: string): string[] =>
  eventsIn(home)
    .filter(({ agentId }) => agentId === undefined)
    .flatMap(({ type }) => (/^(assistant\.turn_start|system\.notification|abort)$/.test(type) ? [type] : []));

const agentFiles = { reader: "You are the READER.", runner: "You are the RUNNER." };

function writeAgents(home: string): void {
  mkdirSync(join(home, "agents"), { recursive: true });
  for (const [name, prompt] of Object.entries(agentFiles)) {
    writeFileSync(join(home, "agents", `${name}.md`), `---\ndescription: The ${name}.\n---\n\n${prompt}\n`);
  }
}

/** A session that was killed when `scout` had answered and `worker` and its `helper` were at work. */
async function killed(home: string): Promise<void> {
  writeAgents(home);
  const model = script(folder.path, [
    { calls: [start("scout", "reader", "sync")] },
    { calls: [start("worker", "runner")] },
    { say: "Working on it." },
    { agent: "READER", say: "scout saw a.txt\nand more" },
    { agent: "RUNNER", calls: [start("helper", "reader", "sync")] },
    { agent: "READER", say: "half", stall: true },
  ]);
  await troupe(["-p", "go", "--model", model], {
    cwd,
    home,
    when: { text: "helper (reader) started", react: (child) => child.kill("SIGKILL") },
  });
}

describe("troupe tasks", () => {
  it("troupe tasks lists every agent below its parent, and shows all it answered, from the log alone", async () => {
    const home = newHome();
    await killed(home);
    const before = eventsIn(home);
    const list = await troupe(["tasks", "list"], { cwd, home });
    expect(list).toMatchObject({ code: 0, stderr: "" });
    expect(list.stdout.split("\n").map((line) => line.replace(/\s+[\d,]+ tokens.*\d+ s {2}/, " … "))).toEqual([
      "scout     reader  completed           1 answer   0 tools … do scout",
      "worker    runner  idle (interrupted)  0 answers  0 tools … do worker",
      "  helper  reader  idle (interrupted)  0 answers  0 tools … do helper",
      "",
    ]);
    const json = await troupe(["tasks", "list", "--json"], { cwd, home });
    expect(JSON.parse(json.stdout)).toMatchObject([
      { id: "scout", status: "completed", reason: "finished", depth: 1, costUsd: 0 },
      { id: "worker", status: "idle", reason: "interrupted", depth: 1 },
      { id: "helper", parentId: "worker", depth: 2 },
    ]);
    const show = await troupe(["tasks", "show", "SCOUT"], { cwd, home });
    expect(show.stdout).toContain("state     completed\n");
    expect(show.stdout).toContain("\n# Answer 1\n\n> work\n\nscout saw a.txt\nand more\n");
    expect((await troupe(["tasks", "show", "worker"], { cwd, home })).stdout).toContain("idle (interrupted)");
    expect(eventsIn(home)).toEqual(before);
  });

  it("troupe tasks asks an idle process for the session before it resumes an agent", async () => {
    const home = newHome();
    await killed(home);
    const [id = ""] = readdirSync(join(home, "session-state"));
    const store = jsonlStore({ root: home, disk: nodeDisk, stamp: systemStamp });
    const log = await store.open(id);
    expect(log.heldBy).toBeUndefined();
    const requests = handOver(nodeDisk);
    const timer = setInterval(() => {
      if (!requests.isAskedFor(log)) return;
      clearInterval(timer);
      void log.close().then(() => requests.answered(log));
    }, 20);
    const model = script(folder.path, [{ agent: "READER", say: "helper is done" }]);
    const resumed = await troupe(["tasks", "resume", "helper", "--model", model], { cwd, home });
    clearInterval(timer);
    await log.close();
    expect(resumed).toMatchObject({ code: 0, stdout: "helper is done\n" });
  });

  it("troupe tasks resumes an interrupted agent with its answer on stdout, and without the main agent", async () => {
    const home = newHome();
    await killed(home);
    const before = doneByMain(home);
    const model = script(folder.path, [{ agent: "READER", say: "helper is done" }]);
    const resumed = await troupe(["tasks", "resume", "helper", "--model", model], { cwd, home });
    expect(resumed).toMatchObject({ code: 0, stdout: "helper is done\n" });
    expect(resumed.stderr.split("\n").map((line) => line.replace(/ in .*/, ""))).toEqual([
      "troupe: worker (runner) was cut off when its process ended",
      "troupe: helper (reader) was cut off when its process ended",
      "troupe: helper (reader) started: do helper",
      "troupe: helper (reader) finished",
      "",
    ]);
    const [id = ""] = readdirSync(join(home, "session-state"));
    expect(readFileSync(join(home, "session-state", id, "events.jsonl"), "utf8")).toContain(
      "Go on where you were interrupted.",
    );
    const show = await troupe(["tasks", "show", "helper"], { cwd, home });
    expect(show.stdout).toContain("helper is done");

    const failing = script(folder.path, [{ agent: "RUNNER", fail: { status: 401, message: "no key" } }]);
    const failed = await troupe(["tasks", "resume", "worker", "now", "--model", failing], { cwd, home });
    expect(failed).toMatchObject({ code: 3, stdout: "" });
    expect(failed.stderr).toMatch(/agent worker did not finish \(error\): .*To resume: troupe tasks resume worker/);

    const stalling = script(folder.path, [{ agent: "RUNNER", say: "half", stall: true }]);
    const interrupted = await troupe(["tasks", "resume", "worker", "--model", stalling], {
      cwd,
      home,
      when: { text: "worker (runner) started", react: (child) => setTimeout(() => child.kill("SIGINT"), 100) },
    });
    expect(interrupted).toMatchObject({ code: 130, stdout: "" });
    expect((await troupe(["tasks", "list"], { cwd, home })).stdout).toMatch(/worker +runner +idle \(interrupted\)/);

    const ended = await troupe(["tasks", "resume", "scout", "--model", model], { cwd, home });
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toMatch(/has ended \(completed\).*troupe tasks show scout/);
    expect(doneByMain(home)).toEqual(before);
  });

  it.each<["sync" | "background", "sync" | "background"]>([
    ["sync", "sync"],
    ["sync", "background"],
    ["background", "sync"],
    ["background", "background"],
  ])("Ctrl+C gives advice in a working command, with a %s agent that has a %s one", async (outer, inner) => {
    const home = newHome();
    writeAgents(home);
    const model = script(folder.path, [
      { calls: [start("worker", "runner", outer)] },
      { say: "Working on it." },
      { agent: "RUNNER", calls: [start("helper", "reader", inner)] },
      { agent: "RUNNER", say: "half", stall: true },
      { agent: "READER", say: "half", stall: true },
    ]);
    const interrupted = await troupe(["-p", "go", "--model", model], {
      cwd,
      home,
      when: { text: "helper (reader) started", react: (child) => setTimeout(() => child.kill("SIGINT"), 200) },
    });
    const advised = [...interrupted.stderr.matchAll(/to resume: troupe (.*)/g)].map(([, command = ""]) => command);
    expect(advised.length).toBeGreaterThan(0);
    const finishing = script(folder.path, [
      ...["RUNNER", "READER"].map((agent) => ({ agent, say: "done now" })),
      { say: "done now" },
    ]);
    for (const command of advised) {
      const words = command.split(" ").map((word) => (word === '"…"' ? "go on" : word));
      const next = await troupe([...words, "--model", finishing], { cwd, home });
      expect({ command, code: next.code, stdout: next.stdout }).toEqual({ command, code: 0, stdout: "done now\n" });
    }
  });

  it("troupe tasks stop stops an agent with all below it, and then has nothing to stop", async () => {
    const home = newHome();
    await killed(home);
    const stop = await troupe(["tasks", "stop", "worker"], { cwd, home });
    expect(stop).toMatchObject({ code: 0, stdout: "Stopped 2 agents: worker, helper\n" });
    expect(await troupe(["tasks", "stop", "--all"], { cwd, home })).toMatchObject({
      code: 0,
      stdout: "Nothing to stop: all of them have ended.\n",
    });
    expect((await troupe(["tasks", "list"], { cwd, home })).stdout).toMatch(/helper +reader +cancelled +0 answers/);
  });

  it("troupe tasks can only read while another process works with the session, and names that process", async () => {
    const home = newHome();
    let live: { pid: number | undefined; list: string; said: string; refusals: string[] } | undefined;
    mkdirSync(join(home, "agents"), { recursive: true });
    writeFileSync(join(home, "agents", "reader.md"), "---\ndescription: The reader.\n---\n\nYou are the READER.\n");
    const model = script(folder.path, [
      { calls: [start("scout", "reader")] },
      { say: "Working on it." },
      { agent: "READER", say: "half", stall: true },
    ]);
    await troupe(["-p", "go", "--model", model], {
      cwd,
      home,
      when: {
        text: "waiting for scout",
        react: (child) => {
          const look = async (): Promise<void> => {
            const list = await troupe(["tasks", "list"], { cwd, home });
            const refused = await Promise.all([
              troupe(["tasks", "stop", "--all"], { cwd, home }),
              troupe(["tasks", "resume", "scout", "--model", model], { cwd, home }),
            ]);
            const refusals = refused.map(({ code, stderr }) => `${code} ${stderr}`);
            live = { pid: child.pid, list: list.stdout, said: list.stderr, refusals };
          };
          void look().finally(() => child.kill("SIGINT"));
        },
      },
    });
    expect(live?.list).toMatch(/^scout +reader +running/);
    expect(live?.said).toContain(`is in use by process ${live?.pid}`);
    for (const refusal of live?.refusals ?? [])
      expect(refusal).toMatch(/^1 troupe: Session .* is in use by process \d+/);
    expect(live?.refusals).toHaveLength(2);
  });

  it("troupe tasks refuses wrong arguments with a message that says what to do", async () => {
    const home = newHome();
    expect(await troupe(["tasks", "list"], { cwd, home })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("No session has worked in this folder"),
    });
    await killed(home);
    const cases = [
      [["tasks", "lsit"], "Did you mean list?"],
      [["taks", "list"], "Did you mean troupe tasks?"],
      [["tasks", "show", "scuot"], "Did you mean scout?"],
      [["tasks", "stop"], "takes ids, or --all"],
      [["tasks", "list", "--session", "nowhere"], "There is no session"],
    ] as const;
    const told = await Promise.all(cases.map(([args]) => troupe([...args], { cwd, home })));
    for (const [index, { code, stderr }] of told.entries()) {
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(cases[index]?.[1] ?? "?") });
    }
    expect(existsSync(join(home, "session-state"))).toBe(true);
  });
});
