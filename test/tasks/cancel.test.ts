import { describe, expect, it } from "vitest";
import { virtualClock } from "../../src/testing/faux-stamp.ts";
import { checkTasks } from "../support/task-checker.ts";
import { type Stage, stage, until } from "./stage.ts";

const states = ["queued", "running", "idle", "completed"] as const;
type State = (typeof states)[number];

/** A task in this state under a chain of running ones; the chain's top is `p1`, its lowest member the parent. */
async function stageWith(state: State, depth: number): Promise<Stage & { parentId: string | undefined }> {
  // One place more than the chain needs; another takes it where the task has to wait.
  const made = stage({ limits: { maxConcurrency: depth } });
  await made.registry.restore();
  let parentId: string | undefined;
  for (let level = 1; level < depth; level++) {
    parentId = await made.start(`p${level}`, { mode: "sync", ...(parentId !== undefined && { parentId }) });
    await made.scene(parentId);
  }
  if (state === "queued") await made.scene(await made.start("filler"));
  const under = parentId === undefined ? {} : { parentId };
  await made.start("x", { ...under, mode: "background", multiTurn: state === "idle" });
  if (state !== "queued") await made.scene("x");
  if (state === "idle" || state === "completed") await made.answer("x");
  expect(made.registry.view("x")?.status).toBe(state);
  return { ...made, parentId };
}

const status = ({ registry }: Stage, id: string): string | undefined => registry.view(id)?.status;
const isUnder = (verdict: State): string => (verdict === "completed" ? "completed" : "cancelled");

describe.each([1, 2, 4])("at depth %i", (depth) => {
  describe.each(states)("a task that is %s", (state) => {
    it("a task is not affected by a waiter that stops waiting", async () => {
      const made = await stageWith(state, depth);
      const stop = new AbortController();
      const wait = made.registry
        .wait("x", { timeoutMs: 60_000, sinceAnswer: 9, signal: stop.signal })
        .catch(() => "aborted");
      stop.abort();
      expect(await wait).toBe(state === "idle" ? "idle" : state === "completed" ? "ended" : "aborted");
      expect(status(made, "x")).toBe(state);
    });

    it("a task ends when it is stopped, alone, and wakes its waiters", async () => {
      const made = await stageWith(state, depth);
      const wait = made.registry.wait("x", { timeoutMs: 60_000 });
      expect(await made.registry.cancel("x")).toBe(state !== "completed");
      expect(await wait).toBe(state === "idle" ? "idle" : "ended");
      expect(status(made, "x")).toBe(isUnder(state));
      for (let level = 1; level < depth; level++) expect(status(made, `p${level}`)).toBe("running");
      expect(await made.registry.cancel("x")).toBe(false);
      expect(checkTasks(made.kept)).toEqual([]);
    });

    it("ORC-40 a task ends with the answer that waits for its parents, and continues when none waits for them", async () => {
      const made = await stageWith(state, depth);
      if (depth > 1) await made.registry.cancel("p1", { notice: "waits" });
      expect(status(made, "x")).toBe(depth === 1 ? state : isUnder(state));
      if (state === "queued") expect(status(made, "filler")).toBe("running");
      expect(checkTasks(made.kept)).toEqual([]);
    });

    it("a task ends when everything is stopped, the lowest first, and nothing continues to run", async () => {
      const made = await stageWith(state, depth);
      await made.registry.cancelAll();
      expect(made.registry.list().filter((task) => !["completed", "cancelled"].includes(task.status))).toEqual([]);
      expect(made.scenes.size).toBe(0);
      const ends = made.kept.flatMap((event) =>
        event.type === "troupe.task_state" && event.data.to === "cancelled" ? [event.data.taskId] : [],
      );
      const chain = ends.filter((id) => id !== "filler");
      const expected = Array.from({ length: depth - 1 }, (_, level) => `p${depth - 1 - level}`);
      expect(chain).toEqual(state === "completed" ? expected : ["x", ...expected]);
      expect(checkTasks(made.kept)).toEqual([]);
      expect(made.registry.list({ includeEnded: false })).toEqual([]);
    });
  });
});

describe("stopping", () => {
  it("stopping releases everything before the end is announced, and notifies a parent that did not stop it", async () => {
    const made = stage();
    await made.registry.restore();
    await made.start("a");
    await made.scene("a");
    await made.registry.cancel("a");
    expect(made.released).toEqual(["a"]);
    expect(made.notices[0]?.notice.content).toContain('Agent "a" (explore) was stopped. Use read_agent');
    expect(made.notices[0]?.notice.kind).toMatchObject({ type: "agent_completed", status: "failed" });
    await made.start("b");
    await made.scene("b");
    await made.registry.cancel("b", { reader: { toolCallId: "stop-b" } });
    expect(made.notices).toHaveLength(1);
  });

  it("stopping continues after 2 s without a runner that does not stop, and ignores its later results", async () => {
    const clock = virtualClock();
    const made = stage({ runner: "deaf", stamp: clock });
    await made.registry.restore();
    await made.start("a");
    const scene = await made.scene("a");
    const cancelled = made.registry.cancel("a");
    await clock.untilAsleep();
    await clock.advance(1999);
    expect(status(made, "a")).toBe("running");
    await clock.advance(1);
    expect(await cancelled).toBe(true);
    expect(status(made, "a")).toBe("cancelled");
    const length = made.kept.length;
    scene.end.resolve({ kind: "answered", response: "too late" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(made.kept.slice(length).filter(({ type }) => type.startsWith("troupe.task_"))).toEqual([]);
    expect((await made.registry.report("a")).answers).toEqual([]);
  });

  it("stopping also ends tasks that are just being started", async () => {
    const made = stage();
    await made.registry.restore();
    await made.start("a");
    await made.scene("a");
    const child = made.start("b", { parentId: "a" });
    await made.registry.cancel("a");
    await child;
    expect([status(made, "a"), status(made, "b")]).toEqual(["cancelled", "cancelled"]);
    await expect(made.start("c", { parentId: "a" })).rejects.toThrow("is at its end and can start no others");
    expect(checkTasks(made.kept)).toEqual([]);
  });

  it("stopping frees the slots of running and waiting tasks", async () => {
    const made = stage({ limits: { maxConcurrency: 1 } });
    await made.registry.restore();
    for (const name of ["a", "b", "c"]) await made.start(name);
    await made.scene("a");
    await made.registry.cancel("b");
    await made.registry.cancel("a");
    await until(() => made.scenes.has("c"), "the next");
    expect(checkTasks(made.kept, { maxConcurrency: 1 })).toEqual([]);
  });
});
