import { describe, expect, it } from "vitest";
import { ModelError } from "../../src/model/model-error.ts";
import type { ModelEvent, ModelRequest, Provider } from "../../src/model/provider.ts";
import {
  breaksOff,
  calls,
  callsWithText,
  fails,
  fauxModel,
  fauxProvider,
  forAgent,
  otherwise,
  rateLimited,
  says,
  stalls,
  thinks,
  throws,
  together,
  withUsage,
} from "../../src/testing/index.ts";

function request(overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "m",
    system: "You are troupe.",
    messages: [{ role: "user", content: "go" }],
    tools: [],
    stream: true,
    ...overrides,
  };
}

async function play(model: Provider, asked = request(), signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream(asked, signal)) events.push(event);
  return events;
}

const usage = { inputTokens: 9, outputTokens: 3, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

describe("steps of a faux model", () => {
  it("a faux model sends text whole, in chunks that keep characters together, or in given deltas", async () => {
    const model = fauxModel(says("hello"), says("ab😀c", { chunkSize: 3 }), says(["x", "y"], { usage }));
    expect(await play(model)).toEqual([
      { type: "text", delta: "hello" },
      { type: "end", stop: "done" },
    ]);
    expect(await play(model)).toEqual([
      { type: "text", delta: "ab" },
      { type: "text", delta: "😀c" },
      { type: "end", stop: "done" },
    ]);
    expect(await play(model)).toEqual([
      { type: "text", delta: "x" },
      { type: "text", delta: "y" },
      { type: "end", stop: "done", usage },
    ]);
    model.assertSpent();
  });

  it("a faux model numbers calls by tool name over the whole script", async () => {
    const model = fauxModel(
      calls(["view", { path: "a" }], ["view", { path: "b" }], ["grep"]),
      calls(["view", {}], ["grep", {}, "mine"]),
      () => calls(["view"]),
    );
    const ids = (events: ModelEvent[]): string[] =>
      events.flatMap((event) => (event.type === "call" ? [event.call.toolCallId] : []));
    expect(await play(model)).toEqual([
      { type: "call", call: { toolCallId: "call_view_1", name: "view", arguments: { path: "a" } } },
      { type: "call", call: { toolCallId: "call_view_2", name: "view", arguments: { path: "b" } } },
      { type: "call", call: { toolCallId: "call_grep_1", name: "grep", arguments: {} } },
      { type: "end", stop: "tools" },
    ]);
    expect(ids(await play(model))).toEqual(["call_view_3", "mine"]);
    expect(ids(await play(model))).toEqual(["call_view_4"]);
  });

  it("a faux model passes on argument text that is not JSON as a call that reports it", async () => {
    const [call] = await play(fauxModel(callsWithText("view", '{"path": ')));
    expect(call).toEqual({
      type: "call",
      call: { toolCallId: "call_view_1", name: "view", arguments: '{"path": ', argumentsError: expect.any(String) },
    });
  });

  it("a faux model's reasoning comes first, and joined parts are one reply that ends once", async () => {
    const model = fauxModel(
      thinks("hm", says("look"), calls(["view"])),
      thinks("only"),
      together(calls(["a"]), says("b")),
    );
    expect(await play(model)).toEqual([
      { type: "reasoning", delta: "hm" },
      { type: "text", delta: "look" },
      { type: "call", call: { toolCallId: "call_view_1", name: "view", arguments: {} } },
      { type: "end", stop: "tools" },
    ]);
    expect(await play(model)).toEqual([
      { type: "reasoning", delta: "only" },
      { type: "end", stop: "done" },
    ]);
    expect((await play(model)).at(-1)).toEqual({ type: "end", stop: "tools" });
  });

  it("a faux model fails with a kind, a status, or a rate limit", async () => {
    const failure = async (moves: ReturnType<typeof fails>) => {
      const [end] = await play(fauxModel(moves));
      if (end?.type !== "end" || !end.error) throw new Error("no error");
      const { kind, statusCode, retryAfterMs, code } = end.error;
      return { stop: end.stop, kind, statusCode, retryAfterMs, code };
    };
    const blank = { stop: "error", retryAfterMs: undefined, code: undefined };
    expect(await failure(fails(503))).toEqual({ ...blank, kind: "server", statusCode: 503 });
    expect(await failure(fails(403))).toEqual({ ...blank, kind: "authentication", statusCode: 403 });
    expect(await failure(fails(422))).toEqual({ ...blank, kind: "request", statusCode: 422 });
    expect(await failure(fails("network"))).toEqual({ ...blank, kind: "network", statusCode: undefined });
    expect(await failure(fails("quota", { code: "insufficient_quota", retryAfterMs: 5 }))).toEqual({
      stop: "error",
      kind: "quota",
      statusCode: 402,
      retryAfterMs: 5,
      code: "insufficient_quota",
    });
    expect(await failure(rateLimited(1500))).toEqual({
      ...blank,
      kind: "rate_limit",
      statusCode: 429,
      retryAfterMs: 1500,
    });
  });

  it("a faux model stalls until the caller gives up", async () => {
    const abort = new AbortController();
    const events: ModelEvent[] = [];
    for await (const event of fauxModel(together(breaksOff("half"), stalls())).stream(request(), abort.signal)) {
      events.push(event);
      if (event.type === "text") setImmediate(() => abort.abort());
    }
    expect(events).toEqual([
      { type: "text", delta: "half" },
      { type: "end", stop: "aborted" },
    ]);
  });

  it("a faux model stalls until a promise settles and continues", async () => {
    let open = (): void => {};
    const until = new Promise<void>((resolve) => {
      open = resolve;
    });
    const reply = play(fauxModel(stalls(until, says("on"))));
    const early = await Promise.race([reply, new Promise((resolve) => setImmediate(() => resolve("still waiting")))]);
    expect(early).toBe("still waiting");
    open();
    expect(await reply).toEqual([
      { type: "text", delta: "on" },
      { type: "end", stop: "done" },
    ]);
  });

  it("a faux model breaks off and throws like a provider", async () => {
    const thrown = new Error("bug");
    const model = fauxModel(breaksOff("half"), throws(thrown), [{ type: "text", delta: "raw" }]);
    expect(await play(model)).toEqual([
      { type: "text", delta: "half" },
      { type: "end", stop: "error", error: ModelError.incomplete("faux") },
    ]);
    expect(await play(model)).toEqual([{ type: "end", stop: "error", error: ModelError.from(thrown, "faux") }]);
    expect(await play(model)).toEqual([
      { type: "text", delta: "raw" },
      { type: "end", stop: "error", error: ModelError.incomplete("faux") },
    ]);
  });

  it("a function in a faux model decides from the request, synchronously or not", async () => {
    const model = fauxModel(async (shown) => says(`you said ${shown.messages[0]?.content}`));
    expect(await play(model)).toEqual([
      { type: "text", delta: "you said go" },
      { type: "end", stop: "done" },
    ]);
  });

  it("a faux model gives up on a function that never decides when the caller aborts", async () => {
    const abort = new AbortController();
    setImmediate(() => abort.abort());
    const model = fauxModel(() => new Promise<never>(() => {}));
    expect(await play(model, request(), abort.signal)).toEqual([{ type: "end", stop: "aborted" }]);
  });

  it("a faux model reports usage, and refuses to where there is no end", async () => {
    expect((await play(fauxModel(withUsage(calls(["a"]), usage)))).at(-1)).toEqual({
      type: "end",
      stop: "tools",
      usage,
    });
    expect(() => withUsage(breaksOff("x"), usage)).toThrow("never ends");
  });
});

describe("a faux model and its script", () => {
  it("a faux model keeps frozen copies of its requests", async () => {
    const model = fauxModel(says("a"));
    const messages = [{ role: "user" as const, content: "before" }];
    const tool = { name: "t", description: "d", parameters: { type: "object" }, run: () => 1 };
    await play(model, request({ messages, tools: [tool] }));
    messages.push({ role: "user", content: "after" });
    expect(model.requests).toEqual([
      request({
        messages: [{ role: "user", content: "before" }],
        tools: [{ name: "t", description: "d", parameters: { type: "object" } }],
      }),
    ]);
    expect(Object.isFrozen(model.requests[0]?.messages[0])).toBe(true);
    expect(Object.isFrozen(model.requests[0]?.tools[0]?.parameters)).toBe(true);
  });

  it("a faux model fails on an extra call, at once and in assertSpent", async () => {
    const model = fauxModel(says("a"));
    await play(model);
    const [end] = await play(model);
    const message = 'faux model: unexpected call 2 (the script has 1 step); the last user message was "go"';
    expect(end).toMatchObject({ type: "end", stop: "error", error: { kind: "internal", message } });
    expect(() => model.assertSpent()).toThrow(message);
  });

  it("a faux model fails on steps that were not used", async () => {
    const model = fauxModel(says("a"), says("b"), forAgent("explorer", says("c")));
    await play(model);
    expect(() => model.assertSpent()).toThrow(
      'faux model: 1 step unused after 1 call\nfaux model: 1 step for agent "explorer" unused after 1 call',
    );
  });

  it("a faux model gives agents their own steps in any order of calls", async () => {
    const model = fauxModel(
      says("root 1"),
      forAgent("explorer", says("explorer 1"), says("explorer 2")),
      forAgent(({ cacheKey }) => cacheKey === "k", says("by key")),
      says("root 2"),
    );
    const text = async (asked: Partial<ModelRequest>): Promise<unknown> => {
      const [first] = await play(model, request(asked));
      return first?.type === "text" ? first.delta : first;
    };
    expect(await text({ system: "You are the Explorer. You work for root." })).toBe("explorer 1");
    expect(await text({})).toBe("root 1");
    expect(await text({ system: "You are explorer", cacheKey: "k" })).toBe("by key");
    expect(await text({ system: "You are no-explorer at all" })).toBe("root 2");
    expect(await text({ system: "explorer" })).toBe("explorer 2");
    model.assertSpent();
    expect(await text({ system: "explorer" })).toMatchObject({
      error: { message: expect.stringContaining('unexpected call 6 (the script has 2 steps for agent "explorer")') },
    });
  });

  it("a faux model knows an agent by its id, then by its name, whatever the prompt says", async () => {
    const model = fauxModel(
      forAgent("explore", says("by name")),
      forAgent("scout", says("by id")),
      forAgent("task", says("of task")),
      says("main"),
    );
    const first = async (asked: Partial<ModelRequest>): Promise<unknown> => (await play(model, request(asked)))[0];
    const system = "You find things. Leave the rest to the task agent.";
    expect(await first({ system, agent: { id: "scout", name: "explore" } })).toMatchObject({ delta: "by id" });
    expect(await first({ system, agent: { id: "explore-2", name: "Explore" } })).toMatchObject({ delta: "by name" });
    expect(await first({ system: "You are troupe.\n- Tools: view, task\n" })).toMatchObject({ delta: "main" });
    expect(() => model.assertSpent()).toThrow('1 step for agent "task" unused after 3 calls');
  });

  it("a faux model takes the agent that the prompt names first", async () => {
    const model = fauxModel(forAgent("writer", says("w")), forAgent("lead", says("l")));
    const [first] = await play(model, request({ system: "You are lead. You may ask writer." }));
    expect(first).toEqual({ type: "text", delta: "l" });
  });

  it("a faux model can answer all other calls, under its own name", async () => {
    const model = fauxProvider({ id: "understudy", steps: [says("first"), otherwise(() => calls(["view"]))] });
    expect(model.id).toBe("understudy");
    await play(model);
    for (const number of [1, 2]) {
      expect((await play(model))[0]).toMatchObject({ call: { toolCallId: `call_view_${number}` } });
    }
    model.assertSpent();
  });
});
