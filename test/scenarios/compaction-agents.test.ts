import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { forAgent, type Step } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { CompactionRun } from "../../src/session/compaction/agent-context.ts";
import { Compactions } from "../../src/session/compaction/compaction.ts";
import { Conversation } from "../../src/session/conversation.ts";
import { EventLog } from "../../src/session/event-log.ts";
import { History } from "../../src/session/history.ts";
import { requestOrigin } from "../../src/session/requests/request-origin.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { problemsOf } from "../context/well-formed.ts";
import { agentOf, agentPool, task } from "../support/agent-pool.ts";
import { memoryStore } from "../support/memory-store.ts";
import { dataOf } from "../support/stage.ts";
import { asksForSummary, big, SUMMARY, summary } from "./compaction-stage.ts";

/** A conversation with a log, and nobody at work in it. */
async function bench(steps: readonly Step[], more: Partial<CompactionRun> = {}) {
  const model = fauxModel(...steps);
  const store = await memoryStore().create("session-1");
  const conversation = new Conversation();
  const stamp = fauxStamp();
  const fold = (event: SessionEvent): void => conversation.apply(event);
  const log = new EventLog({ store, stamp, fold, onListenerDefect: () => undefined });
  const compactions = new Compactions({ events: [] });
  const context = compactions.of({
    ...{ log: store, stamp, hooks: undefined, cacheKey: "session-1", origin: requestOrigin("session-1") },
    model: { provider: model, providerId: "faux", model: "faux-1", contextWindow: 4_000, costOf: () => 0 },
    shown: { system: "You are on stage.", tools: [big] },
    emit: (type, data) => log.emit(undefined, type, data),
    history: new History(conversation, store),
    limitReached: () => undefined,
    usageCounted: () => undefined,
    ...more,
  });
  const say = (content: string) => log.emit(undefined, "user.message", { content });
  const reply = (content: string) =>
    log.emit(undefined, "assistant.message", { messageId: "m", content, toolRequests: [] });
  const messages = () => conversation.entries.map(({ message }) => message);
  return { model, log, context, compactions, say, reply, messages };
}

describe("a compaction that the user requests", () => {
  it("a compaction on request summarises everything with the user's focus, after the hooks", async () => {
    const told: object[] = [];
    const hooks = {
      has: (point: string) => point === "preCompact",
      fire: async (point: string, input: object) => told.push({ point, ...input }) && {},
    } as unknown as NonNullable<CompactionRun["hooks"]>;
    const { context, say, reply, messages, model, log } = await bench([summary()], { hooks });
    await say("2 + 2?");
    await reply("4");
    expect(await context.compact({ focus: "keep the numbers </focus>" })).toMatchObject({
      success: true,
      messagesRemoved: 1,
      checkpointNumber: 1,
    });
    expect(model.requests[0]?.messages.at(-1)?.content).toContain("<focus>\nkeep the numbers &lt;/focus>\n</focus>");
    expect(told).toMatchObject([
      { point: "preCompact", trigger: "manual", customInstructions: "keep the numbers </focus>" },
    ]);
    expect(messages()).toHaveLength(1);
    expect(messages()[0]?.content).toContain("<user_message>\n2 + 2?\n</user_message>");
    expect(dataOf(log.events, "session.compaction_complete")).toMatchObject([
      { trigger: "manual", customInstructions: "keep the numbers </focus>", preCompactionMessagesLength: 2 },
    ]);
  });

  it("a compaction on request is refused when there is too little, runs once, and leaves no trace when stopped", async () => {
    const { context, say, reply, messages } = await bench([stalls()]);
    await say("hello");
    expect(await context.compact()).toMatchObject({ success: false, error: expect.stringContaining("too little") });
    await reply("hello");
    const first = context.compact();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await context.compact()).toMatchObject({ success: false, error: expect.stringContaining("under way") });
    expect(context.abortBlocking()).toBe(true);
    expect(await first).toEqual({ success: false, started: true, error: "It was cancelled." });
    expect(context.abortBlocking()).toBe(false);
    expect(messages().map(({ content }) => content)).toEqual(["hello", "hello"]);
  });

  it("a compaction on request is discarded when the conversation was rebuilt in the meantime", async () => {
    const go = deferred<void>();
    const { context, say, reply, log } = await bench([stalls(go.promise, says(SUMMARY))]);
    await say("one");
    await reply("two");
    const pending = context.compact();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await log.emit(undefined, "session.compaction_complete", {
      success: true,
      summaryContent: "another",
      messagesRemoved: 1,
    });
    go.resolve();
    expect(await pending).toMatchObject({ success: false, error: expect.stringContaining("changed meanwhile") });
  });

  it("a compaction on request ends with the session, and the log shows that", async () => {
    const { context, compactions, say, reply, log } = await bench([stalls()]);
    await say("one");
    await reply("two");
    const pending = context.compact();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await compactions.close();
    expect(await pending).toMatchObject({ success: false });
    expect(dataOf(log.events, "session.compaction_complete")).toMatchObject([{ success: false }]);
  });

  it("a compaction on request is refused without a model call when a limit is used up", async () => {
    const reached = { limit: "turns", allowed: 1, used: 1, message: "Limit reached." } as const;
    const { context, say, reply, model } = await bench([], { limitReached: () => reached });
    await say("one");
    await reply("two");
    expect(await context.compact()).toEqual({ success: false, started: false, error: "Limit reached." });
    expect(model.requests).toEqual([]);
  });
});

describe("a summary that is written in the background", () => {
  it("a background summary is part of every reservation until it has ended, and can be cancelled", async () => {
    const { context, say, reply, messages } = await bench([stalls()]);
    for (let turn = 0; turn < 4; turn++) {
      await say(`question ${turn}`);
      await reply("word ".repeat(700));
    }
    const one = { tokens: () => 1, costUsd: () => null };
    await context.beforeModelCall(new AbortController().signal);
    expect(context.withPending(one).tokens()).toBeGreaterThan(3_000);
    expect(context.withPending(one).costUsd()).toBeNull();
    expect(await context.cancelBackground()).toBe(true);
    expect(context.withPending(one)).toBe(one);
    expect(await context.cancelBackground()).toBe(false);
    expect(messages()).toHaveLength(8);
  });
});

describe("compaction of a subagent", () => {
  it("LOOP-31 compaction of a subagent works in the agent's own conversation and under its own id", async () => {
    const read = calls(["big", { characters: 4_500 }]);
    const isAgent = (request: Parameters<typeof agentOf>[0]): boolean => agentOf(request) !== undefined;
    const { session, model } = await agentPool(
      [
        forAgent(asksForSummary, summary(), summary()),
        forAgent(isAgent, ...Array.from({ length: 6 }, () => read), says("found it")),
        task("scout", "explorer"),
        says("done"),
      ],
      {
        tools: [big],
        largeOutputBytes: 1e6,
        model: { contextWindow: 6_000 } as object,
        compactions: new Compactions({ events: [] }),
      },
    );
    expect(await session.sendAndWait({ prompt: "Send someone" })).toEqual({ kind: "done", answer: "done" });
    const ends = session.events.filter(({ type }) => type === "session.compaction_complete");
    expect(ends.length).toBeGreaterThan(0);
    expect(ends).toMatchObject(ends.map(() => ({ agentId: expect.any(String), data: { success: true } })));
    const last =
      model.requests.filter((request) => isAgent(request) && !asksForSummary(request)).at(-1)?.messages ?? [];
    expect(last[0]?.content).toContain("look around");
    expect(last[0]?.content).toContain("<summary>");
    for (const { messages } of model.requests) expect(problemsOf(messages)).toEqual([]);
    // The main agent's conversation is as it was.
    expect(model.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    await session.close();
  });
});
