import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type ProgressOptions, progress } from "../../src/cli/output/progress.ts";
import { HANG_MS } from "../support/work.ts";
import { became, created, running, said, spent, step, used } from "./stage.ts";

function watched(more: Partial<ProgressOptions> = {}) {
  const written: string[] = [];
  const clock = { now: 0 };
  const bar = progress({
    stderr: { write: (text: string) => written.push(text), columns: 80, rows: 24 },
    live: false,
    colour: false,
    silent: false,
    level: "warning",
    waitMs: 600_000,
    now: () => clock.now,
    ...more,
  });
  return { bar, written, clock };
}

const turn = said("assistant.turn_start", { turnId: "0" });

it("the progress display draws nothing while it is paused, although a redraw was due", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { bar, written } = watched({ live: true });
  for (const event of [turn, created("scout"), ...running("scout")]) bar.show(event);
  bar.pause();
  const before = written.length;
  vi.advanceTimersByTime(5_000);
  expect(written.slice(before)).toEqual([]);
});

describe("the progress display without a terminal", () => {
  it("progress without a terminal has a line when an agent starts and ends, and names it before its tools", () => {
    const { bar, written, clock } = watched();
    for (const event of [turn, created("scout"), ...running("scout"), ...used("glob", { pattern: "*" }, "scout")]) {
      bar.show(event);
    }
    bar.show(said("assistant.idle", {}));
    bar.show(spent(1_100, 0, "scout"));
    clock.now = 3_200;
    bar.show(became("scout", "running", "idle", { reason: "finished" }));
    bar.show(became("scout", "idle", "completed", { reason: "finished" }));
    expect(written).toEqual([
      "troupe: scout (explore) started: look around\n",
      "troupe: scout: glob *\n",
      "troupe: waiting for scout (explore), at most 600 s\n",
      "troupe: scout (explore) finished in 3.2 s, 1 tool, 1,112 tokens\n",
    ]);
  });

  it("progress without a terminal keeps the lines of a warning, and indents those after the first", () => {
    const { bar, written } = watched();
    bar.show(
      said("session.warning", {
        warningType: "autopilot",
        message: "the check failed:\n  not\u001b[2J ok 1\ntroupe: forged",
      }),
    );
    expect(written.join("")).toBe("troupe: the check failed:\n  not ok 1\n  troupe: forged\n");
  });

  it.each([
    ["failed", "error", "failed after 0.0 s, 0 tools, 0 tokens: no key"],
    ["failed", "limit", "was stopped by a limit after 0.0 s, 0 tools, 0 tokens: no key"],
    ["failed", "empty", "ended without an answer after 0.0 s, 0 tools, 0 tokens: no key"],
    ["cancelled", "stopped", "was stopped after 0.0 s, 0 tools, 0 tokens: no key"],
    ["idle", "interrupted", "was cut off after 0.0 s, 0 tools, 0 tokens: no key"],
  ] as const)("progress without a terminal does not report success when an agent is %s by %s", (to, reason, text) => {
    const { bar, written } = watched();
    for (const event of [created("scout"), ...running("scout")]) bar.show(event);
    bar.show(became("scout", "running", to, { reason, error: "no\nkey" }));
    expect(written.at(-1)).toBe(`troupe: scout (explore) ${text}\n`);
  });

  it("progress without a terminal reports each call that failed or was denied once", () => {
    const { bar, written } = watched();
    bar.show(created("scout"));
    const ended = (code: string, message: string, agentId?: string) =>
      bar.show(said("tool.execution_complete", { toolCallId: "c", success: false, error: { message, code } }, agentId));
    const start = (agentId?: string) =>
      bar.show(said("tool.execution_start", { toolCallId: "c", toolName: "bash", arguments: {} }, agentId));
    start();
    ended("failure", "no such file\nand more");
    start();
    bar.show(said("session.warning", { warningType: "permission_denied", message: "bash denied (rm): no rule" }));
    ended("denied", "The call was not allowed.");
    start("scout");
    ended("denied", "a hook says no", "scout");
    start();
    ended("interrupted", "cut off");
    expect(written.filter((line) => /failed|denied/.test(line))).toEqual([
      "troupe: bash failed: no such file\n",
      "troupe: bash denied (rm): no rule\n",
      "troupe: scout: bash denied: a hook says no\n",
    ]);
    expect(written).toHaveLength(3 + 4);
  });

  it("progress without a terminal writes nothing when it is silent", () => {
    const { bar, written } = watched({ silent: true });
    for (const event of [turn, created("scout"), ...running("scout"), ...used("glob", {}, "scout")]) bar.show(event);
    bar.show(became("scout", "running", "failed", { reason: "error", error: "no" }));
    expect(written).toEqual([]);
  });
});

/** What agents do is drawn together a moment later. */
const collected = () => new Promise((resolve) => setTimeout(resolve, 130));

describe("the progress display on a terminal", () => {
  it("BLX-30 progress draws 100 events of a worker once, after 50 ms, and one of the main agent at once", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { bar, written } = watched({ live: true, now: () => Date.now() });
    const pass = (ms: number): void => void vi.advanceTimersByTime(ms);
    bar.show(turn);
    bar.show(created("a", { agentName: "scout", mode: "sync" }));
    for (const event of running("a")) bar.show(event);
    // The last drawing is longer ago than the shortest time between two.
    pass(300);
    const before = written.length;
    for (let index = 0; index < 100; index++) {
      bar.show(step("a", { stepId: "tool-view", title: "view", status: "running", note: `${index} calls` }));
      bar.show(used("view", { path: `${index}.ts` }, "a")[0] ?? turn);
    }
    pass(49);
    expect(written).toHaveLength(before);
    pass(1);
    expect(written).toHaveLength(before + 1);
    expect(written.at(-1)).toContain("view 99.ts");
    pass(300);
    const settled = written.length;
    for (let index = 0; index < 100; index++) bar.show(used("view", { path: `${index}.md` }, "a")[0] ?? turn);
    expect(written).toHaveLength(settled);
    bar.show(said("assistant.message_delta", { messageId: "m", deltaContent: "so" }));
    expect(written).toHaveLength(settled + 1);
    expect(written.at(-1)).toContain("view 99.md");
    pass(300);
    expect(written).toHaveLength(settled + 1);
    bar.stop();
  });

  it("progress on a terminal draws the tree in place, clears it before every line, and removes it at the end", async () => {
    const { bar, written, clock } = watched({ live: true });
    for (const event of [turn, created("scout"), ...running("scout")]) {
      clock.now += 150;
      bar.show(event);
    }
    await collected();
    expect(written.at(-1)).toBe("\r\u001b[J… thinking · turn 1 · 1 s\n└ scout (explore) running 0 s");
    clock.now += 150;
    bar.show(said("session.warning", { warningType: "x", message: "mind \u001b[2J this" }));
    expect(written.slice(-3)).toEqual([
      "\r\u001b[1A\u001b[J",
      "troupe: mind  this\n",
      "… thinking · turn 1 · 1 s\n└ scout (explore) running 0 s",
    ]);
    bar.stop();
    expect(written.at(-1)).toBe("\r\u001b[1A\u001b[J");
    const length = written.length;
    clock.now += 1_000;
    bar.show(turn);
    expect(written).toHaveLength(length);
  });

  it("progress on a terminal is drawn at most ten times a second, with the last change", async () => {
    const { bar, written } = watched({ live: true, now: () => performance.now() });
    const began = performance.now();
    bar.show(turn);
    bar.show(created("scout"));
    for (const event of running("scout")) bar.show(event);
    const drawn = () => written.filter((text) => text.includes("turn 1"));
    while (performance.now() - began < 350 || (drawn().length < 3 && performance.now() - began < HANG_MS)) {
      for (let index = 0; index < 50; index++) bar.show(spent(1, 0, "scout"));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    bar.show(used("glob", { pattern: "last" }, "scout")[0] ?? turn);
    await new Promise((resolve) => setTimeout(resolve, 130));
    bar.stop();
    const draws = drawn();
    expect(draws.length).toBeGreaterThan(2);
    expect(draws.length).toBeLessThanOrEqual(Math.ceil((performance.now() - began) / 100) + 1);
    expect(draws.at(-1)).toContain("glob last");
  });

  it("progress on a terminal finds the start of its drawing in a terminal that became narrower", () => {
    const stderr = {
      written: [] as string[],
      columns: 80,
      rows: 24,
      write: (text: string) => stderr.written.push(text),
    };
    const { bar } = watched({ live: true, stderr });
    bar.show(turn);
    bar.show(
      said("tool.execution_start", { toolCallId: "c", toolName: "bash", arguments: { command: "x".repeat(60) } }),
    );
    stderr.columns = 30;
    bar.stop();
    expect(stderr.written.at(-1)).toBe("\r\u001b[2A\u001b[J");
  });
});
