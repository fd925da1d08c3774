import { describe, expect, it } from "vitest";
import type { Moves } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { Client } from "../../src/sdk/client.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import { joinableServer } from "../../src/server/joinable.ts";
import { keyTable } from "../../src/terminal/input/key-table.ts";
import { OverlayReplay, type OverlayReplayOptions } from "../../src/terminal/overlays/replay.ts";
import { TerminalSession } from "../../src/terminal/session.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { calls, forAgent, otherwise, says, type WantedCall } from "../../src/testing/index.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { READY, type TerminalStage, terminalStage } from "./stage.ts";

const TREE = "\u0014";
const ESC = "\u001b";
const STATUS = /replay: event ([\d,]+) of ([\d,]+) · \d\d:\d\d:\d\d · \] forward · L live/;

const asks =
  (text: string) =>
  ({ messages }: ModelRequest): boolean =>
    JSON.stringify(messages.find(({ role }) => role === "user")).includes(text);
const task = (name: string, prompt: string, mode: "sync" | "background"): WantedCall => [
  "task",
  { agent_type: "general-purpose", name, description: `do ${name}`, prompt, mode },
];

/** A gate that replies wait for. */
function gate() {
  let open = (): void => undefined;
  const until = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, before: (moves: Moves): Moves => [{ type: "wait", until }, ...moves] };
}

/** `middle` reads, then waits for `leaf`, which reads and answers. Each stops at its gate. */
function nested(gates: {
  readonly middle: ReturnType<typeof gate>;
  readonly leaf: ReturnType<typeof gate>;
}): HttpStep[] {
  return [
    forAgent(asks("level 2"), calls(["view", { path: "readme.md" }]), gates.leaf.before(says("The leaf is done."))),
    forAgent(
      asks("level 1"),
      gates.middle.before(calls(["view", { path: "." }])),
      calls(task("leaf", "level 2", "sync")),
      says("The middle is done."),
    ),
    calls(task("middle", "level 1", "background")),
    says("It works."),
    otherwise(says("All is done.")),
  ];
}

/** The overlay without its footer, and without ages, which go on while it is live. */
function bodyOf(screen: string): string {
  const rows = screen.split("\n");
  const body = rows.slice(
    0,
    rows.findLastIndex((row) => /^(replay:|q close|Enter open)/.test(row)),
  );
  const status = body.findIndex((row) => row.startsWith("replay:"));
  const kept = status < 0 ? body : body.slice(0, status);
  return kept
    .join("\n")
    .replace(/\d+ s\b/g, "N s")
    .replace(/\n{3,}/g, "\n\n")
    .trimEnd();
}

const positionOf = (screen: string): number | undefined => {
  const [, position] = STATUS.exec(screen.replace(/\s*\n\s*/g, " ")) ?? [];
  return position === undefined ? undefined : Number(position.replace(",", ""));
};

/** Goes from the start to live, step by step. Returns what each step showed. */
async function bodiesOf(stage: TerminalStage): Promise<string[]> {
  stage.send("<");
  await stage.shows(STATUS);
  const bodies: string[] = [];
  for (let at: number | undefined = positionOf(await stage.screenText()); at !== undefined; ) {
    bodies.push(bodyOf(await stage.screenText()));
    const before = at;
    stage.send("]");
    await expect.poll(async () => positionOf(await stage.screenText())).not.toBe(before);
    at = positionOf(await stage.screenText());
  }
  return bodies;
}

describe("replay in the terminal", { timeout: 120_000 }, () => {
  it("a replay shows the run and the tree at any event as they were live, while the session continues", async () => {
    const gates = { middle: gate(), leaf: gate() };
    await using stage = await terminalStage({ steps: nested(gates), columns: 110, rows: 40 });
    await stage.shows(READY);
    stage.send("go\r");
    await stage.shows("It works.");
    stage.send(TREE);
    await stage.shows("◆ middle");
    const trees = [bodyOf(await stage.screenText())];
    stage.send("\r");
    await stage.shows("turn 1");
    const runs = [bodyOf(await stage.screenText())];
    gates.middle.open();
    await stage.shows("○ task leaf");
    await stage.shows(/waits: .* → leaf$/m);
    runs.push(bodyOf(await stage.screenText()));
    stage.send(ESC);
    await stage.shows("◆ leaf");
    stage.send("j");
    await stage.shows("last: 2.");
    trees.push(bodyOf(await stage.screenText()));

    // One step back in the tree; the run opens at the same moment, and the session ends its work meanwhile.
    stage.send("[");
    await stage.shows(STATUS);
    stage.send("k\r");
    await stage.shows("Run");
    const held = bodyOf(await stage.screenText());
    expect(positionOf(await stage.screenText())).toBeGreaterThan(1);
    const lengthOf = (screen: string): number => Number(STATUS.exec(screen.replace(/\s*\n\s*/g, " "))?.[2] ?? 0);
    const length = lengthOf(await stage.screenText());
    gates.leaf.open();
    await expect.poll(async () => lengthOf(await stage.screenText())).toBeGreaterThan(length + 10);
    expect(bodyOf(await stage.screenText())).toBe(held);
    stage.send("L");
    await stage.shows("The middle is done.");
    runs.push(bodyOf(await stage.screenText()));

    const replayed = await bodiesOf(stage);
    expect(runs.map((run) => replayed.includes(run))).toEqual([true, true, true]);
    expect(runs.map((run) => replayed.indexOf(run))).toEqual(
      runs.map((run) => replayed.indexOf(run)).sort((a, b) => a - b),
    );
    // Every step shows something else.
    for (const [index, body] of replayed.entries()) expect(body).not.toBe(replayed[index - 1]);
    stage.send(ESC);
    await stage.shows("◆ leaf");
    stage.send("j");
    await stage.shows("▸   ◆ leaf");
    trees.push(bodyOf(await stage.screenText()));
    const steps = await bodiesOf(stage);
    for (const tree of trees) expect(steps).toContain(tree);
    // Nothing of it is in the transcript.
    stage.send("q");
    await stage.shows("All is done.");
    const lines = (await stage.lines()).join("\n");
    expect(lines).not.toContain("replay:");
    expect(lines.match(/All is done\./g)).toHaveLength(1);
  });

  it("a replay forks the session at the shown event after a second press, and keeps the prompt's keys", async () => {
    const gates = { middle: gate(), leaf: gate() };
    await using stage = await terminalStage({ steps: nested(gates), columns: 110, rows: 40 });
    gates.middle.open();
    gates.leaf.open();
    await stage.shows(READY);
    stage.send("[f]");
    await stage.shows("› [f]");
    stage.send("\u0003go\r");
    await stage.shows("All is done.");
    stage.send(TREE);
    await stage.shows("◆ leaf");
    stage.send("[[[");
    const shown = await stage.shows(STATUS);
    stage.send("f");
    await stage.shows(`f again forks the session after event ${positionOf(shown)}`);
    stage.send("[");
    await stage.hides("f again forks");
    stage.send("<ff");
    await stage.shows("this is a copy");
    stage.send("/transcript\r");
    await stage.shows("q close");
    const copy = await stage.shows("› go");
    expect(copy).not.toContain("It works.");
  });
});

/** A session of one process that a second one has joined. */
async function joined() {
  const folder = await tempFolder({ "work/a.txt": "a\n" });
  const model = await modelServer({ steps: [calls(["view", { path: "a.txt" }]), says("one"), says("two")] });
  const home = folder.at("home");
  const environment = {
    PATH: process.env.PATH ?? "",
    TROUPE_HOME: home,
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "scripted",
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
  };
  const cwd = folder.at("work");
  const own = await createClient({ connection: inProcess({ environment, cwd, isJoinable: true }) });
  const open = (client: Client, resumeId: string | undefined) =>
    TerminalSession.open({
      client,
      cwd: resumeId === undefined ? cwd : undefined,
      resumeId,
      onChange: () => undefined,
    });
  const first = await open(own, undefined);
  await expect.poll(() => joinableServer(home, process.pid)).toBeDefined();
  const server = await joinableServer(home, process.pid);
  const other = await createClient({ connection: { kind: "tcp", host: "127.0.0.1", port: 0, ...server } });
  return {
    first,
    attached: await open(other, first.id),
    async [Symbol.asyncDispose]() {
      await other.stop();
      await own.stop();
      await model.close();
      await folder.remove();
    },
  };
}

describe("the replay of an overlay", { timeout: 60_000 }, () => {
  const press = (replay: OverlayReplay, key: string): boolean => replay.key({ id: key, data: key }, "");
  const replayOf = (session: TerminalSession, more: Partial<OverlayReplayOptions> = {}) =>
    new OverlayReplay({ session, keys: keyTable, onChange: () => undefined, fork: () => undefined, ...more });

  it("a replay reads the log of a session that another process has open, and its new events", async () => {
    await using stage = await joined();
    await stage.first.send("first", "steer");
    await expect.poll(() => stage.attached.view.main.modelCalls).toBe(2);
    await expect.poll(() => stage.attached.view.main.status).toBe("idle");
    const replay = replayOf(stage.attached);
    expect(press(replay, "]")).toBe(false);
    expect(press(replay, "<")).toBe(true);
    expect(replay.status()).toBe("replay: reading the log");
    await expect.poll(() => replay.status()).toMatch(STATUS);
    expect(replay.view.main.modelCalls).toBe(0);
    await stage.first.send("second", "steer");
    await expect.poll(() => stage.attached.view.main.modelCalls).toBe(3);
    expect(replay.view.main.modelCalls).toBe(0);
    for (const turns of [1, 2, 3]) {
      press(replay, "}");
      expect(replay.view.main.modelCalls).toBe(turns);
    }
    press(replay, "{");
    expect(replay.view.main.modelCalls).toBe(2);
    press(replay, "L");
    expect(replay.status()).toBeUndefined();
    expect(replay.view).toBe(stage.attached.view);
    replay.close();
  });

  it("a replay refuses a log that would take too much memory, reports that, and stays live", async () => {
    await using stage = await joined();
    await stage.first.send("first", "steer");
    await expect.poll(() => stage.first.view.main.modelCalls).toBe(2);
    const replay = replayOf(stage.first, { maxCharacters: 1_000 });
    press(replay, "[");
    await expect.poll(() => replay.status()).toMatch(/^replay: the log has more than .* Run troupe web/);
    expect(replay.isLive).toBe(true);
    // Any later key of the overlay itself works, and the next step tries again.
    expect(press(replay, "]")).toBe(false);
    press(replay, "[");
    expect(replay.status()).toBe("replay: reading the log");
    await expect.poll(() => replay.status()).toMatch(/^replay: the log has more/);
    replay.close();
  });
});
