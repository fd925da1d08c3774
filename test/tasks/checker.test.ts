import { describe, expect, it } from "vitest";
import type { EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";
import { checkTasks, type TaskRule } from "../support/task-checker.ts";
import { message, stage, until } from "./stage.ts";

const options = { settled: true, maxConcurrency: 2 } as const;

/** A log with most of what can happen, and nothing wrong. */
async function goodLog(): Promise<SessionEvent[]> {
  const { registry, start, scene, scenes, answer, hear, emit, kept } = stage({ limits: { maxConcurrency: 2 } });
  await registry.restore();
  await start("a", { multiTurn: true, tools: ["view", "grep"], limits: { tokens: 100 } });
  await start("b", { parentId: "a", mode: "sync", tools: ["grep"] });
  await start("c");
  await start("d");
  await scene("b");
  await emit("b", "troupe.usage", usage(60));
  await answer("b");
  await emit("a", "tool.execution_complete", { toolCallId: "call-b", success: true });
  await answer("c");
  await registry.send("a", "go on");
  await answer("d", "words of d");
  (await scene("a")).end.resolve({ kind: "answered", response: "one" });
  await until(() => registry.get("a")?.answers.length === 1 && scenes.has("a"), "the second turn");
  await answer("a");
  await hear();
  await start("e");
  await start("f", { parentId: "e", mode: "sync" });
  await scene("f");
  await registry.cancel("e");
  await hear();
  await registry.remove("c");
  await until(() => kept.filter(({ type }) => type === "troupe.task_notice_delivered").length === 5, "confirmations");
  return kept;
}

const usage = (inputTokens: number): EventData<"troupe.usage"> => ({
  turnId: "t",
  provider: "p",
  model: "m",
  inputTokens,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  durationMs: 1,
  attempts: 1,
});

type Mutation = (log: SessionEvent[]) => SessionEvent[];
const event = <T extends EventType>(type: T, data: EventData<T>, agentId?: string): SessionEvent =>
  ({
    id: "x",
    timestamp: "2026-01-01T00:00:00.000Z",
    parentId: null,
    ...(agentId && { agentId }),
    type,
    data,
  }) as SessionEvent;
const about = (id: string, type: string, to?: string) => (given: SessionEvent) => {
  const data = given.data as { taskId?: string; to?: string; kind?: { agentId?: string } };
  return given.type === type && (data.taskId ?? data.kind?.agentId) === id && (to === undefined || data.to === to);
};
const without =
  (...isMeant: ((given: SessionEvent) => boolean)[]): Mutation =>
  (log) =>
    log.filter((given) => !isMeant.some((is) => is(given)));
const twice =
  (isMeant: (given: SessionEvent) => boolean): Mutation =>
  (log) =>
    log.flatMap((given) => (isMeant(given) ? [given, given] : [given]));
const changed =
  (isMeant: (given: SessionEvent) => boolean, data: object): Mutation =>
  (log) =>
    log.map((given) => (isMeant(given) ? ({ ...given, data: { ...given.data, ...data } } as SessionEvent) : given));
const swapped =
  (first: (given: SessionEvent) => boolean, second: (given: SessionEvent) => boolean): Mutation =>
  (log) => {
    const [a, b] = [log.find(first), log.find(second)];
    return log.map((given) => (given === a && b ? b : given === b && a ? a : given));
  };
const added =
  (...more: SessionEvent[]): Mutation =>
  (log) => [...log, ...more];

const bugs: [string, TaskRule, Mutation][] = [
  [
    "ends twice",
    "one-end",
    added(event("troupe.task_state", { taskId: "d", from: "completed", to: "failed", reason: "error" })),
  ],
  ["is never ended", "one-end", without(about("d", "troupe.task_state", "completed"))],
  ["is made twice, after it was removed", "one-end", twice(about("c", "troupe.task_created"))],
  ["is changed without having been made", "one-end", without(about("d", "troupe.task_created"))],
  ["skips a state", "one-end", without(about("d", "troupe.task_state", "running"))],
  ["is removed while it lives", "one-end", added(event("troupe.task_removed", { taskId: "a" }))],
  ["works while idle", "one-end", added(event("assistant.message", message("hello"), "a"))],
  [
    "runs on in another process",
    "one-end",
    (log) =>
      log.flatMap((given) =>
        about("d", "troupe.task_state", "completed")(given)
          ? [event("session.resume", { resumeTime: "", eventCount: 0 }), given]
          : [given],
      ),
  ],
  ["is told of twice", "heard-once", twice(about("d", "system.notification"))],
  ["is heard of twice", "heard-once", twice(about("d", "troupe.task_notice_delivered"))],
  ["is confirmed without having been said", "heard-once", without(about("d", "system.notification"))],
  [
    "is never told of",
    "heard-once",
    without(about("d", "system.notification"), about("d", "troupe.task_notice_delivered")),
  ],
  [
    "is told of as a success that it was not",
    "heard-once",
    changed(about("e", "system.notification"), {
      kind: { type: "agent_completed", agentId: "e", agentType: "explore", status: "completed" },
    }),
  ],
  [
    "is told of to a stranger",
    "heard-once",
    (log) => log.map((given) => (about("d", "system.notification")(given) ? { ...given, agentId: "a" } : given)),
  ],
  ["is completed without words", "words", changed(about("d", "troupe.task_state", "completed"), { response: " " })],
  [
    "is completed as stopped by a limit",
    "words",
    changed(about("d", "troupe.task_state", "completed"), { reason: "limit" }),
  ],
  [
    "ends before those who work for it",
    "no-remains",
    swapped(about("e", "troupe.task_state", "cancelled"), about("f", "troupe.task_state", "cancelled")),
  ],
  [
    "goes on after its end",
    "no-remains",
    added(event("tool.execution_start", { toolCallId: "z", toolName: "bash" }, "e")),
  ],
  [
    "is started by one that ended",
    "no-remains",
    (log) => {
      const made = log.find(about("f", "troupe.task_created"));
      return made ? [...log, { ...made, data: { ...made.data, taskId: "g" } } as SessionEvent] : [];
    },
  ],
  ["may more than its parent", "rights", changed(about("b", "troupe.task_created"), { tools: ["grep", "bash"] })],
  ["is not as deep as it says", "rights", changed(about("b", "troupe.task_created"), { depth: 1 })],
  [
    "has more tokens than its parent",
    "accounts",
    changed(about("b", "troupe.task_created"), { limits: { tokens: 500 } }),
  ],
  ["uses what belongs to nobody", "accounts", added(event("troupe.usage", usage(1), "ghost"))],
  [
    "calls a model with nothing left",
    "accounts",
    added(event("troupe.usage", usage(60), "b"), event("troupe.usage", usage(1), "b")),
  ],
  [
    "overtakes one that waited longer",
    "places",
    swapped(about("c", "troupe.task_created"), about("d", "troupe.task_created")),
  ],
  [
    "hears a message twice",
    "messages",
    (log) =>
      log.flatMap((given) =>
        given.type === "user.message" && given.data.content === "go on" ? [given, given] : [given],
      ),
  ],
  [
    "is written to after its end",
    "messages",
    added(event("troupe.task_message", { taskId: "d", messageId: "m9", content: "hello" })),
  ],
];

describe("the checker of tasks", () => {
  it("the checker of tasks finds nothing wrong with a good log, nor with any beginning of it", async () => {
    const log = await goodLog();
    expect(checkTasks(log, options)).toEqual([]);
    for (let length = 0; length < log.length; length++) {
      expect(checkTasks(log.slice(0, length), { maxConcurrency: 2 })).toEqual([]);
    }
  });

  it.each(bugs)("the checker of tasks finds a task that %s", async (_, rule, mutate) => {
    const found = checkTasks(mutate(structuredClone(await goodLog())), options);
    expect(found.map((violation) => violation.rule)).toContain(rule);
  });

  it("the checker of tasks finds more running tasks than slots", async () => {
    const found = checkTasks(await goodLog(), { maxConcurrency: 1 });
    expect(found.map(({ rule }) => rule)).toContain("places");
  });

  it("the checker of tasks finds a registry that forgets delivered notices after a restart", async () => {
    const deaf = stage();
    await deaf.registry.restore();
    await deaf.start("a");
    await deaf.answer("a");
    await deaf.hear();
    await until(() => deaf.kept.at(-1)?.type === "troupe.task_notice_delivered", "the confirmation");
    const isForgotten = ({ type }: SessionEvent): boolean =>
      type === "system.notification" || type === "troupe.task_notice_delivered";
    const again = stage({ kept: deaf.kept.filter((given) => !isForgotten(given)) });
    await again.registry.restore();
    await again.hear();
    const said = again.kept.slice(deaf.kept.length - 2);
    expect(checkTasks([...deaf.kept, ...said]).map(({ rule }) => rule)).toContain("heard-once");
  });

  it("the checker of tasks finds a registry that frees slots too early", async () => {
    const kept: SessionEvent[] = [];
    const broken = stage({
      kept,
      limits: { maxConcurrency: 1 },
      observe: (registry, given) => {
        registry.observe(given);
        // The mistake: a task counts as idle as soon as it has been told something, though the log says nothing of it.
        if (given.type === "user.message" && given.agentId === "a") {
          registry.observe(
            event("troupe.task_state", { taskId: "a", from: "running", to: "idle", reason: "finished" }),
          );
        }
      },
    });
    await broken.registry.restore();
    await broken.start("a");
    await broken.start("b");
    await broken.scene("b");
    expect(checkTasks(kept, { maxConcurrency: 1 }).map(({ rule }) => rule)).toContain("places");
  });

  it("the checker of tasks finds a session that lets agents continue without recovery", async () => {
    const first = stage();
    await first.registry.restore();
    await first.start("a");
    await first.scene("a");
    const second = stage({ kept: structuredClone(first.kept) });
    await second.emit(undefined, "session.resume", { resumeTime: "", eventCount: first.kept.length });
    await second.emit("a", "assistant.message", message("I go on."));
    expect(checkTasks(second.kept).map(({ rule }) => rule)).toContain("one-end");
  });
});
