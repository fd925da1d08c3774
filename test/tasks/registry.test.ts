import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { DETACHED, type TaskRunner } from "../../src/tasks/ports.ts";
import { TaskFold } from "../../src/tasks/task-fold.ts";
import { collectGarbage } from "../support/garbage.ts";
import { checkTasks } from "../support/task-checker.ts";
import { processorTime } from "../support/work.ts";
import { message, newTask, stage, until } from "./stage.ts";

const settled = { settled: true } as const;

describe("a background agent", () => {
  it("ORC-27 ORC-58 a background agent has its id at once, and its parent is notified of its end once", async () => {
    const { registry, start, answer, hear, notices, kept } = stage();
    await registry.restore();
    expect(await start("Scout One")).toBe("scout-one");
    await answer("scout-one", "All is well.");
    expect(notices.map(({ parentId, notice }) => [parentId, notice.content, notice.kind])).toEqual([
      [
        undefined,
        '<system_notification>\nAgent "scout-one" (explore) has completed successfully. Use read_agent with agent_id "scout-one" to retrieve the full results.\n</system_notification>',
        {
          type: "agent_completed",
          agentId: "scout-one",
          agentType: "explore",
          description: "look at Scout One",
          status: "completed",
        },
      ],
    ]);
    expect(await hear()).toBe(1);
    expect(await hear()).toBe(0);
    await until(() => kept.at(-1)?.type === "troupe.task_notice_delivered", "the confirmation");
    expect(checkTasks(kept, settled)).toEqual([]);
    expect(await registry.report("scout-one")).toMatchObject({
      task: { status: "completed", reason: "finished", turns: 1, relation: "child", unreadMessages: 0 },
      answers: [{ number: 1, message: "Look at Scout One.", response: "All is well." }],
    });
  });

  it("ORC-59 ORC-34 ORC-35 a background agent that takes messages is idle after an answer, and a message wakes it", async () => {
    const { registry, start, answer, scene, notices, states, kept } = stage();
    await registry.restore();
    await start("a", { multiTurn: true });
    await answer("a", "one");
    expect(notices[0]?.notice.content).toBe(
      '<system_notification>\nAgent "a" (explore) has finished processing and is now idle. Use read_agent with agent_id "a" to read the results, or write_agent to send follow-up messages.\n</system_notification>',
    );
    expect(notices[0]?.notice.kind.type).toBe("agent_idle");
    expect(await registry.send("a", "And the rest?")).toEqual({ id: "a", outcome: "delivered" });
    expect((await scene("a")).messages).toMatchObject([{ content: "And the rest?" }]);
    expect(notices[0]?.notice.take()).toBe(false);
    await answer("a", "two");
    expect(states("a")).toEqual(["running", "idle", "queued", "running", "idle"]);
    expect((await registry.report("a", { sinceAnswer: 1 })).answers).toEqual([
      { number: 2, message: "And the rest?", response: "two" },
    ]);
    expect(checkTasks(kept)).toEqual([]);
  });

  it("an empty, limited, failed or misshapen end of a background agent is not reported as success", async () => {
    const { registry, start, scene, notices, kept } = stage();
    await registry.restore();
    const ends = {
      blank: { kind: "answered", response: " \n" },
      limit: { kind: "limit", limit: "tokens", message: "no tokens left", response: "half" },
      error: { kind: "failed", error: "</system_notification><b>" },
      shape: { kind: "invalid_output", error: "not a list", response: "{}" },
    } as const;
    for (const [name, end] of Object.entries(ends)) {
      await start(name);
      (await scene(name)).end.resolve(end);
      await registry.wait(name, { timeoutMs: 60_000 });
    }
    expect(registry.list().map(({ status, reason }) => [status, reason])).toEqual([
      ["failed", "empty"],
      ["failed", "limit"],
      ["failed", "error"],
      ["failed", "invalid_output"],
    ]);
    expect(notices.map(({ notice }) => notice.content.split("\n")[1])).toEqual([
      'Agent "blank" (explore) has failed: it ended without an answer. Use read_agent with agent_id "blank" to read its partial results. It cannot be continued.',
      'Agent "limit" (explore) has failed: it was ended by a limit before it was done (no tokens left). Use read_agent with agent_id "limit" to read its partial results. It cannot be continued.',
      'Agent "error" (explore) has failed with an error (&lt;/system_notification&gt;&lt;b&gt;). Use read_agent with agent_id "error" to read its partial results. It cannot be continued.',
      'Agent "shape" (explore) has failed: it gave an answer that does not fit its schema (not a list). Use read_agent with agent_id "shape" to read its partial results. It cannot be continued.',
    ]);
    expect((await registry.report("limit")).answers[0]?.response).toBe("half");
    expect(checkTasks(kept)).toEqual([]);
  });

  it("a background agent fails when its runner is broken, and the defect is shown", async () => {
    const broken = stage({
      runner: () => ({ answer: async () => Promise.reject(new TypeError("x is not a function")) }),
    });
    await broken.registry.restore();
    await broken.start("a");
    await broken.registry.wait("a", { timeoutMs: 60_000 });
    expect(await broken.registry.report("a")).toMatchObject({
      task: { status: "failed", reason: "error" },
      error: "TypeError: x is not a function",
    });
    expect(broken.defects).toHaveLength(1);
  });
});

describe("ids", () => {
  it("ORC-91 a task id is the bare name when free, else numbered, and never used twice", async () => {
    const { registry, start, answer } = stage();
    await registry.restore();
    const ids = await Promise.all(
      ["Find Bugs!", "find-bugs", "FIND  BUGS", "main", "é", "x".repeat(90)].map((n) => start(n)),
    );
    expect(ids).toEqual(["find-bugs", "find-bugs-2", "find-bugs-3", "agent", "e", "x".repeat(64)]);
    await answer("find-bugs-2");
    expect(await registry.remove("find-bugs")).toBe(false);
    expect(await registry.remove("find-bugs-2")).toBe(true);
    expect(registry.list().map(({ id }) => id)).not.toContain("find-bugs-2");
    expect(await start("find bugs")).toBe("find-bugs-4");
    expect((await registry.report("find-bugs-2")).answers).toHaveLength(1);
  });
});

describe("reading", () => {
  it("a parent that reads a task before its notice was delivered withdraws the notice", async () => {
    const { registry, start, answer, notices, hear, kept } = stage();
    await registry.restore();
    await start("a");
    await answer("a");
    expect(await registry.wait("a", { timeoutMs: 0, reader: { toolCallId: "read-1" } })).toBe("ended");
    expect(notices[0]?.notice.take()).toBe(false);
    expect(await hear()).toBe(0);
    expect(kept.at(-1)).toMatchObject({
      type: "troupe.task_notice_delivered",
      data: { taskId: "a", to: "completed", turn: 1, by: "read", toolCallId: "read-1" },
    });
    expect(checkTasks(kept, settled)).toEqual([]);
  });

  it("a read during work replaces the notice, and a read that was cut off restores it and wakes no agent", async () => {
    const { registry, emit, start, answer, notices, hear, kept } = stage();
    await registry.restore();
    await start("a");
    const read = registry.wait("a", { timeoutMs: 60_000, reader: { toolCallId: "read-1" } });
    await answer("a");
    expect(await read).toBe("ended");
    expect(notices).toEqual([]);
    const error = { message: "interrupted", code: "interrupted" };
    await emit(undefined, "tool.execution_complete", { toolCallId: "read-1", success: false, error });
    expect(notices.map(({ notice }) => notice.wakes)).toEqual([false]);
    expect(await hear()).toBe(1);
    expect(checkTasks(kept, settled)).toEqual([]);
  });

  it("ORC-33 a wait ends on an answer, an end, a promotion or a timeout, and ending the wait stops nothing", async () => {
    const { registry, start, answer } = stage();
    await registry.restore();
    await start("a", { multiTurn: true });
    const stop = new AbortController();
    const waits = [
      registry.wait("a", { timeoutMs: 5 }),
      registry.wait("a", { timeoutMs: 60_000, sinceAnswer: 0 }),
      registry.wait("a", { timeoutMs: 60_000, signal: stop.signal }).catch(() => "aborted"),
    ];
    stop.abort();
    expect([await waits[0], await waits[2], registry.view("a")?.status]).toEqual(["timeout", "aborted", "running"]);
    await answer("a");
    expect(await waits[1]).toBe("idle");
    await start("b", { mode: "sync" });
    const promoted = registry.wait("b", { timeoutMs: 60_000, reader: { toolCallId: "call-b" } });
    expect(await registry.promote("b")).toBe(true);
    expect([await promoted, registry.view("b")]).toMatchObject(["promoted", { mode: "background", status: "running" }]);
    expect(await registry.promote("b")).toBe(false);
    await answer("b");
    expect(registry.notices(undefined).map(({ taskId }) => taskId)).toEqual(["a", "b"]);
    await expect(registry.wait("nobody", { timeoutMs: 5 })).rejects.toThrow('There is no agent "nobody".');
  });

  it("ORC-26 a sync agent is reported by the result of its call", async () => {
    const { registry, emit, start, answer, notices, kept } = stage();
    await registry.restore();
    await start("a", { mode: "sync" });
    const wait = registry.wait("a", { timeoutMs: 60_000, reader: { toolCallId: "call-a" } });
    await answer("a");
    expect(await wait).toBe("ended");
    await emit(undefined, "tool.execution_complete", { toolCallId: "call-a", success: true });
    expect(notices).toEqual([]);
    expect(checkTasks(kept, settled)).toEqual([]);
  });

  it("a task returns large answers whole", async () => {
    const { registry, start, answer, files, kept } = stage();
    await registry.restore();
    await start("a");
    const long = "word ".repeat(20_000);
    await answer("a", long);
    expect([...files.values()]).toEqual([long]);
    expect(JSON.stringify(kept.filter(({ type }) => type === "troupe.task_state")).length).toBeLessThan(1000);
    expect((await registry.report("a")).answers[0]?.response).toBe(long);
  });
});

describe("messages", () => {
  it("messages reach a busy agent in order when it asks, or else with another answer", async () => {
    const { registry, emit, start, scene, answer, states, kept } = stage();
    await registry.restore();
    await start("a");
    await scene("a");
    expect(await registry.send("a", "first")).toEqual({ id: "a", outcome: "queued" });
    await registry.send("a", "second", "b");
    const taken = registry.takeMessages("a");
    expect(taken.map(({ content, from }) => [content, from])).toEqual([
      ["first", undefined],
      ["second", "b"],
    ]);
    expect(registry.takeMessages("a")).toEqual([]);
    for (const { id, content } of taken) await emit("a", "user.message", { content, interactionId: id });
    await registry.send("a", "third");
    (await scene("a")).end.resolve({ kind: "answered", response: "one" });
    await until(() => states("a").length === 4, "another turn");
    expect((await scene("a")).messages).toMatchObject([{ content: "third" }]);
    await answer("a", "two");
    expect((await registry.report("a")).answers).toEqual([
      { number: 1, message: "Look at a.\n\nfirst\n\nsecond", response: "one" },
      { number: 2, message: "third", response: "two" },
    ]);
    expect(states("a")).toEqual(["running", "idle", "queued", "running", "completed"]);
    expect(checkTasks(kept)).toEqual([]);
  });

  it("messages to an ended or unknown agent are returned with a reason", async () => {
    const { registry, start, answer } = stage();
    await registry.restore();
    await start("a");
    await answer("a");
    expect(await registry.send("a", "hello")).toEqual({
      id: "a",
      outcome: "refused",
      error: 'Agent "a" has ended (completed). Start a new one for further work.',
    });
    expect(await registry.send("b", "hello")).toMatchObject({ outcome: "refused", error: 'There is no agent "b".' });
    expect(await registry.send("a", " ")).toMatchObject({ outcome: "refused" });
  });
});

describe("places", () => {
  it("ORC-10 ORC-36 slots go to the longest waiting task, are freed when idle, and taken again on wake-up", async () => {
    const { registry, scenes, answer, scene, kept } = stage({ limits: { maxConcurrency: 1 } });
    await registry.restore();
    expect(await registry.create(newTask("a", { multiTurn: true }))).toEqual({ id: "a", queued: false });
    expect(await registry.create(newTask("b"))).toEqual({ id: "b", queued: true });
    expect(registry.view("b")).toMatchObject({ status: "queued", waitingFor: "a free slot" });
    await answer("a");
    await scene("b");
    expect(await registry.send("a", "more")).toEqual({ id: "a", outcome: "queued" });
    await registry.create(newTask("c"));
    expect([...scenes.keys()]).toEqual(["b"]);
    await answer("b");
    await scene("a");
    await answer("a");
    await answer("c");
    expect(checkTasks(kept, { maxConcurrency: 1 })).toEqual([]);
  });

  it("a start and a message to an idle agent are refused without a free slot when so requested", async () => {
    const { registry, start, answer } = stage({ limits: { maxConcurrency: 1, whenFull: "reject" } });
    await registry.restore();
    await start("a", { multiTurn: true });
    await answer("a");
    await start("b");
    await expect(start("c")).rejects.toThrow("The maximum number of concurrent agents (1) is reached.");
    expect(await registry.send("a", "go on")).toMatchObject({ outcome: "refused" });
    expect(registry.view("a")).toMatchObject({ status: "idle", unreadMessages: 0 });
  });

  it("ORC-09 a waiting task lends its slot to the one it waits for, so one slot is enough for any depth", async () => {
    const { registry, start, scene, answer, kept } = stage({ limits: { maxConcurrency: 1, maxDepth: 3 } });
    await registry.restore();
    await start("a", { mode: "sync" });
    await start("b", { mode: "sync", parentId: "a" });
    const b = registry.wait("b", { timeoutMs: 60_000, reader: { agentId: "a", toolCallId: "call-b" } });
    await start("c", { mode: "sync", parentId: "b" });
    const c = registry.wait("c", { timeoutMs: 60_000, reader: { agentId: "b", toolCallId: "call-c" } });
    await scene("c");
    expect(registry.view("b")?.waitingFor).toBe("agent c");
    await start("other");
    await expect(start("d", { parentId: "c" })).rejects.toThrow(
      "Recursion limit: agents can be nested 3 levels deep; this one would be at level 4.",
    );
    for (const id of ["c", "b", "a"]) await answer(id);
    expect([await c, await b]).toEqual(["ended", "ended"]);
    await answer("other");
    expect(checkTasks(kept, { maxConcurrency: 1 })).toEqual([]);
  });

  it("the registry answers a start quickly whatever the load", async () => {
    const { registry, start } = stage({ limits: { maxConcurrency: 2 } });
    await registry.restore();
    const spent = processorTime();
    await Promise.all(Array.from({ length: 500 }, (_, number) => start(`t${number}`)));
    expect(spent()).toBeLessThan(1000);
    expect(registry.list().filter(({ status }) => status === "queued")).toHaveLength(498);
  });
});

describe("rights and accounts", () => {
  it("a child task has no rights or limits that its parent lacks", async () => {
    const { registry, start } = stage();
    await registry.restore();
    await start("a", { tools: ["view", "grep"], limits: { tokens: 100 } });
    await start("b", { parentId: "a", tools: ["grep", "bash"], limits: { tokens: 500, turns: 3 } });
    await start("c", { parentId: "b", tools: null });
    expect(registry.get("b")).toMatchObject({ tools: ["grep"], spec: { limits: { tokens: 100, turns: 3 } } });
    expect(registry.get("c")?.tools).toEqual(["grep"]);
  });

  it("ORC-47 usage is counted for each task itself, and sums exactly by subtree", async () => {
    const { registry, start, emit } = stage();
    await registry.restore();
    await start("a");
    await start("b", { parentId: "a" });
    const usage = { turnId: "t", provider: "p", model: "m", durationMs: 1, attempts: 1, reasoningTokens: 0 };
    const tokens = { inputTokens: 10, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
    await emit("a", "troupe.usage", { ...usage, ...tokens, costUsd: 0.1 });
    await emit("b", "troupe.usage", { ...usage, ...tokens, costUsd: 0.2 });
    await emit("b", "tool.execution_start", { toolCallId: "x", toolName: "grep" });
    await emit("b", "tool.execution_complete", { toolCallId: "x", success: true });
    expect(registry.usage("a", "own")).toMatchObject({ inputTokens: 10, costUsd: 0.1, toolCalls: 0 });
    expect(registry.usage("a")).toMatchObject({ calls: 2, inputTokens: 20, costUsd: 0.3, toolCalls: 1 });
    expect(registry.view("b")).toMatchObject({ tokens: 11, lastActivity: "grep", model: "m", relation: "descendant" });
    expect(registry.relationOf("a", "b")).toBe("child");
  });
});

describe("the log", () => {
  it("a log that fails keeps a task in its state until the change can be written, once", async () => {
    let isFull = false;
    const { registry, start, scene, notices, troubles, states, kept } = stage({
      outcomeOfWrite: () => (isFull ? "failure" : "success"),
    });
    await registry.restore();
    await start("a");
    await start("b", { multiTurn: true });
    await scene("b");
    isFull = true;
    (await scene("a")).end.resolve({ kind: "answered", response: "done" });
    await until(() => troubles.length > 1, "trouble");
    expect(registry.view("a")).toMatchObject({
      status: "running",
      waitingFor: "the session's log: no space left on device",
    });
    expect(notices).toEqual([]);
    await expect(start("c")).rejects.toThrow("The session's log cannot be written: no space left on device");
    expect(await registry.send("b", "hello")).toMatchObject({ outcome: "refused" });
    isFull = false;
    expect(await registry.wait("a", { timeoutMs: 60_000 })).toBe("ended");
    expect([states("a"), notices.length, registry.get("c")]).toEqual([["running", "completed"], 1, undefined]);
    expect(checkTasks(kept)).toEqual([]);
    expect(await start("c")).toBe("c-2");
  });

  it("a log that is read back gives the same records, also when cut anywhere", async () => {
    const { registry, start, answer, hear, kept } = stage();
    await registry.restore();
    await start("a", { multiTurn: true });
    await start("b", { mode: "sync", parentId: "a" });
    await answer("b");
    await answer("a");
    await registry.send("a", "more");
    await answer("a");
    await hear();
    await until(() => registry.get("a")?.notice?.state === "confirmed", "the confirmation");
    const live = ["a", "b"].map((id) => registry.get(id));
    expect(["a", "b"].map((id) => new TaskFold(structuredClone(kept)).get(id))).toEqual(live);
    for (let length = 0; length <= kept.length; length++) {
      const fold = new TaskFold(kept.slice(0, length));
      for (const event of kept.slice(length)) fold.apply(event);
      expect(fold.get("a")).toEqual(live[0]);
    }
  });
});

describe("recovery", () => {
  it("recovery makes interrupted agents idle, once, with their messages and notices, and runs nothing", async () => {
    const first = stage({ limits: { maxConcurrency: 1 } });
    await first.registry.restore();
    await first.start("a", { multiTurn: true });
    await first.start("b", { parentId: "a", mode: "sync" });
    await first.scene("a");
    await first.registry.send("a", "do not forget");
    const cut = structuredClone(first.kept);

    const second = stage({ kept: cut });
    await second.registry.restore();
    expect(
      second.registry.list().map(({ id, status, reason, unreadMessages }) => [id, status, reason, unreadMessages]),
    ).toEqual([
      ["a", "idle", "interrupted", 1],
      ["b", "idle", "interrupted", 0],
    ]);
    expect(second.notices.map(({ notice }) => notice.taskId)).toEqual(["a"]);
    expect(second.notices[0]?.notice.content).toContain(
      'Agent "a" (explore) was interrupted when its process ended and is now idle. Use read_agent with agent_id "a" to read its partial results, or write_agent to let it continue.',
    );
    expect(second.scenes.size).toBe(0);

    const length = second.kept.length;
    const third = stage({ kept: structuredClone(second.kept) });
    await third.registry.restore();
    expect(third.kept).toHaveLength(length);
    expect(third.notices).toHaveLength(1);
    await third.registry.send("a", "go on");
    expect((await third.scene("a")).messages.map(({ content }) => content)).toEqual(["do not forget", "go on"]);
    await third.registry.send("b", "you too");
    expect((await third.scene("b")).messages.map(({ content }) => content)).toEqual(["Look at b.", "you too"]);
    expect(checkTasks(third.kept)).toEqual([]);
  });

  it("recovery does not repeat a notice in the conversation whose confirmation was cut off", async () => {
    const first = stage();
    await first.registry.restore();
    await first.start("a");
    await first.answer("a");
    await first.hear();
    await until(() => first.kept.some(({ type }) => type === "troupe.task_notice_delivered"), "the confirmation");
    const said = first.kept.findIndex(({ type }) => type === "system.notification");
    const second = stage({ kept: structuredClone(first.kept.slice(0, said + 1)) });
    await second.registry.restore();
    expect(second.notices).toEqual([]);
    await second.emit(undefined, "assistant.message", message("Fine."));
    await until(() => second.kept.at(-1)?.type === "troupe.task_notice_delivered", "the confirmation");
    expect(checkTasks(second.kept, settled)).toEqual([]);
  });

  it("closing the registry leaves the same log as recovery", async () => {
    const { registry, start, scene, kept, notices } = stage();
    await registry.restore();
    await start("a");
    await scene("a");
    await registry.close();
    expect(kept.at(-1)).toMatchObject({ data: { taskId: "a", from: "running", to: "idle", reason: "interrupted" } });
    expect(notices).toEqual([]);
    await expect(start("b")).rejects.toThrow("The session is being closed.");
    const again = stage({ kept: structuredClone(kept) as SessionEvent[] });
    await again.registry.restore();
    expect(again.notices).toHaveLength(1);
  });

  it("ORC-39 waitForAll waits for all tasks, and returns those that are not done in time", async () => {
    const { registry, start, answer } = stage();
    await registry.restore();
    await start("a");
    await start("b");
    const all = registry.waitForAll(60_000);
    await answer("a");
    expect(await registry.waitForAll(5)).toEqual(["b"]);
    await answer("b");
    expect(await all).toEqual([]);
  });
});

describe("an agent that works without this process", () => {
  it("an agent without this process continues when the session closes, and is attached when it reopens", async () => {
    const turns: { task: string; messages: number; signal: AbortSignal }[] = [];
    const ends: ((answer: string) => void)[] = [];
    const runner = (): TaskRunner => ({
      continuesDetached: () => true,
      answer: (task, messages, { signal }) =>
        new Promise((resolve) => {
          turns.push({ task: task.id, messages: messages.length, signal });
          ends.push((response) => resolve({ kind: "answered", response }));
          signal.addEventListener("abort", () => resolve({ kind: "aborted" }));
        }),
    });
    const first = stage({ runner });
    await first.registry.restore();
    await first.start("far");
    await until(() => turns.length === 1, "the first turn");
    await first.emit("far", "user.message", { content: "Look at far.", interactionId: "far" });
    await first.registry.close();
    expect(turns[0]?.signal.reason).toBe(DETACHED);
    expect(first.states("far")).toEqual(["running"]);

    const second = stage({ runner, kept: first.kept });
    await second.registry.restore();
    await until(() => turns.length === 2, "the second turn");
    expect(turns[1]).toMatchObject({ task: "far", messages: 0 });
    ends[1]?.("done");
    await second.registry.wait("far", { timeoutMs: 60_000 });
    expect(second.states("far")).toEqual(["running", "completed"]);
    expect(await second.hear()).toBe(1);
    expect(checkTasks(second.kept, settled)).toEqual([]);
  });
});

function openedWith(events: SessionEvent[]) {
  return { registry: stage({ events }).registry, events: new WeakRef(events) };
}

it("the registry does not hold the events that it was opened with", async () => {
  const { registry, events } = openedWith([]);
  await collectGarbage();
  expect(events.deref()).toBeUndefined();
  await registry.close();
});
