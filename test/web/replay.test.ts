/** Long sessions: replay is exact, opening and seeking are fast, and few rows are in the document. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { calls, says } from "../../src/testing/index.ts";
import { Replay } from "../../src/view/replay.ts";
import { SessionView } from "../../src/view/session-view.ts";
import type { View } from "../../src/view/view.ts";
import { readStream } from "./events.ts";
import { noBrowser, openBrowser, openTab, type WebStage, webStage } from "./stage.ts";

const SLOW = process.env.TROUPE_SLOW !== undefined;

/** A run of many agents, one event after the other. */
function longRun(count: number, agents: number): SessionEvent[] {
  const events: unknown[] = [];
  const add = (type: string, data: unknown, agentId?: string): void => {
    const number = events.length + 1;
    const timestamp = new Date(1_700_000_000_000 + number * 250).toISOString();
    const parentId = number === 1 ? null : `e${number - 1}`;
    events.push({ id: `e${number}`, timestamp, parentId, type, data, ...(agentId !== undefined && { agentId }) });
  };
  const start = { sessionId: "long", version: 1, producer: "troupe", copilotVersion: "0" };
  add("session.start", { ...start, startTime: "2026-01-01T00:00:00.000Z", context: { cwd: "/work" } });
  add("user.message", { content: "Do all of it", attachments: [] });
  for (let index = 0; index < agents; index++) {
    const about = { taskId: `worker-${index}`, toolCallId: `c${index}`, kind: "agent", agentName: "task" };
    const more = { description: `part ${index}`, prompt: `Do part ${index}`, mode: "background", depth: 1 };
    add("troupe.task_created", { ...about, ...more, agentDisplayName: "Task", multiTurn: true, tools: null });
    add("troupe.task_state", { taskId: `worker-${index}`, from: "queued", to: "running" });
  }
  for (let turn = 0; events.length < count; turn++) {
    const agentId = `worker-${turn % agents}`;
    const call = `t${turn}`;
    add("assistant.turn_start", { turnId: call, model: "scripted" }, agentId);
    const usage = {
      inputTokens: 1_000 + turn,
      outputTokens: 50,
      cacheReadTokens: 900,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    };
    add(
      "troupe.usage",
      { ...usage, turnId: call, provider: "p", model: "m", costUsd: 0.001, durationMs: 900, attempts: 1 },
      agentId,
    );
    const toolRequests = [{ toolCallId: call, name: "view", arguments: { path: `src/file-${turn}.ts` } }];
    add("assistant.message", { messageId: `m${turn}`, content: `I look at file ${turn}.`, toolRequests }, agentId);
    add(
      "tool.execution_start",
      { toolCallId: call, toolName: "view", arguments: { path: `src/file-${turn}.ts` } },
      agentId,
    );
    const content = `line one of ${turn}\n${"text ".repeat(40)}`;
    add("tool.execution_complete", { toolCallId: call, success: turn % 17 !== 0, result: { content } }, agentId);
    add("assistant.turn_end", { turnId: call }, agentId);
    if (turn % 40 === 0) add("user.message", { content: `Message ${turn}`, attachments: [] });
  }
  return events.slice(0, count) as SessionEvent[];
}

/** The log as a file, without the cost of many appends. */
async function store(stage: WebStage, sessionId: string, events: readonly SessionEvent[]): Promise<void> {
  const log = await jsonlStore({ root: stage.home, disk: nodeDisk, stamp: systemStamp }).create(sessionId);
  let last: Promise<void> = Promise.resolve();
  for (const event of events) last = log.append(event, { barrier: false });
  await last;
  await log.close();
}

/** A view as data, without the counter of changes. */
const plain = ({ view }: SessionView): unknown =>
  JSON.parse(
    JSON.stringify({ ...view, revision: 0 } satisfies View, (_, value: unknown) =>
      value instanceof Map ? [...value] : value,
    ),
  );

describe("replay", () => {
  it("a replay in the page has at random events of 50 agents the view of a live client", async () => {
    await using stage = await webStage();
    const events = longRun(SLOW ? 8_000 : 600, 50);
    await store(stage, "long", events);
    await using stream = await readStream(stage, "session=long&list=0");
    await stream.until(({ all }) => all.some(({ kind }) => kind === "ready"));
    const received = stream.events();
    expect(received).toHaveLength(events.length);
    const wanted = new Set(
      Array.from({ length: SLOW ? 200 : 20 }, () => 1 + Math.floor(Math.random() * events.length)),
    );
    const replay = new Replay(received);
    const live = new SessionView();
    for (const [index, event] of events.entries()) {
      live.apply(event);
      if (wanted.has(index + 1)) expect(plain(replay.at(index + 1))).toEqual(plain(live));
    }
  });

  it.runIf(SLOW)("a replay in the page forks with the files of that event, and runs nothing again", async () => {
    const edit = (from: string, to: string) => calls(["edit", { path: "a.txt", old_str: from, new_str: to }]);
    const steps = [
      edit("one", "two"),
      calls(["create", { path: "b.txt", file_text: "new\n" }]),
      edit("two", "three"),
      says("done"),
    ];
    await using stage = await webStage({ files: { "work/a.txt": "one\n", "work/same.bin": "\u0000same" }, steps });
    execFileSync("git", ["init", "-q", stage.cwd]);
    execFileSync("git", ["-C", stage.cwd, "add", "."]);
    const identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    execFileSync("git", ["-C", stage.cwd, ...identity, "commit", "-qm", "first"]);
    const client = await stage.other();
    const session = await client.createSession({ onPermissionRequest: () => ({ kind: "approve-once" }) });
    const moments = new Map<string, Record<string, string>>();
    session.on((event) => {
      if (event.type === "tool.execution_complete") moments.set(event.id, tree(stage.cwd));
    });
    await session.sendAndWait("change");
    await session.disconnect();
    expect(moments.size).toBe(3);
    for (const [eventId, files] of moments) {
      const { sessionId: forkId, cwd } = await stage.call<{ sessionId: string; cwd: string }>("web.fork", {
        sessionId: session.sessionId,
        toEventId: eventId,
      });
      expect(tree(cwd)).toEqual(files);
      const forked = await stage.call<readonly SessionEvent[]>("web.events", { sessionId: forkId });
      expect(forked.some(({ id }) => id === eventId)).toBe(true);
    }
    expect(tree(stage.cwd)["a.txt"]).toBe("three\n");
  });
});

function tree(folder: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (name.startsWith(".git") || !statSync(path).isFile()) continue;
    files[relative(folder, path)] = readFileSync(path, "latin1");
  }
  return files;
}

/** Moves the slider and waits for two frames, seven times. Returns the times. */
const seeking = `(async () => {
  const slider = document.querySelector(".replay input[type=range]");
  const times = [];
  for (const part of [0.5, 0.1, 0.93, 0.31, 0.77, 0.02, 0.61]) {
    const at = performance.now();
    slider.value = String(Math.floor(Number(slider.max) * part));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    times.push(performance.now() - at);
  }
  return times;
})()`;

describe.skipIf(!SLOW || noBrowser !== undefined)(
  `long sessions in a browser${noBrowser ? ` (skipped: ${noBrowser})` : ""}`,
  () => {
    let browser: Awaited<ReturnType<typeof openBrowser>>;
    beforeAll(async () => {
      browser = await openBrowser();
    });
    afterAll(() => browser?.[Symbol.asyncDispose]());

    it.each([20_000, 100_000, 200_000])(
      "long sessions in the page open with %i events, mount at most 300 rows, and seek anywhere",
      async (size) => {
        await using stage = await webStage();
        await store(stage, "long", longRun(size, 30));
        await using tab = await openTab(browser.browser, stage);
        const { page } = tab;
        await page.waitForSelector(".session-row");
        const start = performance.now();
        await page.goto(`${stage.origin}/#/s/long`);
        await page.waitForSelector(".agent-row");
        const opened = performance.now() - start;
        const seeks = await page.evaluate<number[]>(seeking);
        expect(await page.locator("[data-key]").count()).toBeLessThanOrEqual(300);
        expect(await page.innerText(".replay .where")).toMatch(/^[\d,]+ \/ [\d,]+/);
        const worst = Math.max(...seeks);
        const line = `${size} events: opened in ${Math.round(opened)} ms, slowest of 7 seeks ${Math.round(worst)} ms`;
        console.log(line);
        if (process.env.TROUPE_FIGURES) writeFileSync(process.env.TROUPE_FIGURES, `${line}\n`, { flag: "a" });
        expect(seeks).toHaveLength(7);
        expect(tab.trouble).toEqual([]);
      },
    );
  },
);
