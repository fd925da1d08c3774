import { describe, expect, it } from "vitest";
import * as z from "zod";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { calls, fails, rateLimited, says } from "../../src/model/faux/faux-step.ts";
import { Limiter } from "../../src/model/limiter.ts";
import { withRetry } from "../../src/model/retry.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { httpStatus, rawBytes, withFaults } from "../../src/testing/http-reply.ts";
import { type ModelServerOptions, modelServer } from "../../src/testing/model-server.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { dataOf, stage } from "../support/stage.ts";

/** A session over real HTTP whose waits pass at once. */
async function overHttp(steps: NonNullable<ModelServerOptions["steps"]>) {
  const server = await modelServer({ steps });
  const place = {
    id: "test",
    baseUrl: server.baseUrl,
    headers: async () => ({}),
    bounds: { idleMs: 300, connectMs: 10_000, totalMs: 20_000 },
  };
  const provider = withRetry(openaiChat(place), { stamp: fauxStamp(), random: () => 0.5 });
  return { server, ...(await stage([], { provider, streaming: true })) };
}

describe("LOOP-28: a model call with retries", () => {
  it("a model call is retried after 429 and 5xx, waits as long as requested, and adds no turn", async () => {
    const { server, session, heard } = await overHttp([
      httpStatus(429, { headers: { "retry-after": "7" } }),
      httpStatus(429, { headers: { "retry-after-ms": "1500" } }),
      fails(500),
      fails(503),
      says("at last"),
    ]);
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "at last" });
    expect(server.requests).toHaveLength(5);
    expect(dataOf(session.events, "assistant.turn_start")).toHaveLength(1);
    const waits = dataOf(heard, "troupe.retry").map(({ delayMs }) => delayMs);
    expect(waits[0]).toBeGreaterThanOrEqual(7_000);
    expect(waits[1]).toBeGreaterThanOrEqual(1_500);
    expect(dataOf(heard, "model.call_failure").map(({ statusCode }) => statusCode)).toEqual([429, 429, 500, 503]);
    expect(dataOf(session.events, "troupe.usage")).toMatchObject([{ attempts: 5 }]);
  });

  it("a model call is given up after five retries, and that is reported", async () => {
    const { server, session } = await overHttp(Array.from({ length: 6 }, () => fails(500)));
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({
      kind: "error",
      error: { kind: "server", statusCode: 500 },
    });
    expect(server.requests).toHaveLength(6);
  });

  it("LOOP-28 a model call is given up at once when the requested wait is longer than 180 s", async () => {
    const { server, session } = await overHttp([rateLimited(181_000)]);
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "error", error: { kind: "rate_limit" } });
    expect(server.requests).toHaveLength(1);
  });

  it.each([400, 401, 402, 403, 404, 413])("a model call is never retried after status %i", async (status) => {
    const { server, session } = await overHttp([httpStatus(status)]);
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({
      kind: "error",
      error: { statusCode: status, hint: expect.any(String) },
    });
    expect(server.requests).toHaveLength(1);
  });

  it("a model call is repeated once without a refused optional parameter, and warns once", async () => {
    const body = JSON.stringify({ error: { message: "Unknown parameter: 'stream_options'", param: "stream_options" } });
    const { server, session } = await overHttp([httpStatus(400, { body }), says("first"), says("second")]);
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "first" });
    expect(await session.sendAndWait({ prompt: "on" })).toEqual({ kind: "done", answer: "second" });
    expect(server.requests).toHaveLength(3);
    expect(dataOf(session.events, "session.warning")).toEqual([
      { warningType: "parameter_refused", message: expect.stringContaining('"stream_options"') },
    ]);
    expect(dataOf(session.events, "troupe.usage")).toMatchObject([{ attempts: 2 }, { attempts: 1 }]);
  });

  it("a model call counts the tokens of a reply that the provider filtered", async () => {
    const usage = { prompt_tokens: 40, completion_tokens: 2 };
    const filtered = { choices: [{ delta: {}, finish_reason: "content_filter" }], usage };
    const { server, session } = await overHttp([rawBytes(`data: ${JSON.stringify(filtered)}\n\ndata: [DONE]\n\n`)]);
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({
      kind: "error",
      error: { kind: "content_filter" },
    });
    expect(dataOf(session.events, "troupe.usage")).toMatchObject([{ inputTokens: 40, outputTokens: 2 }]);
  });

  it("a model call is retried after a reply that stalled half-way, and the half is kept for users only", async () => {
    const { server, session } = await overHttp([
      withFaults(says("half an answer", { chunkSize: 4 }), { stall: 2 }),
      says("a whole one"),
    ]);
    await using _ = server;
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "a whole one" });
    expect(dataOf(session.events, "troupe.partial_message")).toHaveLength(1);
    expect(dataOf(session.events, "assistant.message").map(({ content }) => content)).toEqual(["a whole one"]);
  });
});

describe("a call that has to wait", () => {
  it("a held-back model request notifies listeners and writes nothing to the log", async () => {
    const stamp = fauxStamp();
    const limiter = new Limiter({ stamp, maxConcurrency: 1 });
    const pass = await limiter.join().enter(new AbortController().signal);
    const { session, heard } = await stage([], {
      provider: withRetry(fauxModel(says("At last.")), { stamp, limiter }),
    });
    session.subscribe(({ type }) => type === "troupe.model_wait" && pass.release());
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "At last." });
    expect(dataOf(heard, "troupe.model_wait")).toEqual([{ reason: "concurrency", waiting: 1 }]);
    expect(dataOf(session.events, "troupe.model_wait")).toEqual([]);
  });

  it("a waiting tool notifies clients of the file, and of the agent that has it", async () => {
    const waiting = { path: "/work/a.ts", holder: "scout", isOver: false };
    const waits = defineTool({
      name: "waits",
      description: "waits",
      input: z.object({}),
      run: async (_, { lockWait }) => {
        lockWait?.(waiting);
        return { content: "done" };
      },
    });
    const { session, heard } = await stage([calls(["waits", {}, "call-1"]), says("Done.")], { tools: [waits] });
    await session.sendAndWait({ prompt: "go" });
    expect(dataOf(heard, "troupe.lock_wait")).toEqual([{ toolCallId: "call-1", ...waiting }]);
  });
});
