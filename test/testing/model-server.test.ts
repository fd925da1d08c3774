import { describe, expect, it } from "vitest";
import type { Moves } from "../../src/testing/index.ts";
import {
  breaksOff,
  calls,
  callsWithText,
  fails,
  fauxModel,
  forAgent,
  type HttpStep,
  httpPlan,
  type ModelServer,
  modelServer,
  rateLimited,
  says,
  stalls,
  thinks,
  throws,
  together,
  withFaults,
  withUsage,
} from "../../src/testing/index.ts";
import { HANG_MS } from "../support/work.ts";
import { ask, type Parsed, wires } from "./wires.ts";

const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 30, cacheWriteTokens: 0, reasoningTokens: 5 };
const nothing: Parsed = { text: "", reasoning: "", calls: [], finish: undefined, usage: undefined };

/** Each wire's own words for how a reply ended. */
const finishes = {
  chat: { done: "stop", tools: "tool_calls", length: "length", filter: "content_filter" },
  responses: { done: "completed", tools: "completed", length: "incomplete", filter: "incomplete" },
  messages: { done: "end_turn", tools: "tool_use", length: "max_tokens", filter: "refusal" },
} as const;

async function serving<T>(steps: readonly HttpStep[], run: (server: ModelServer) => Promise<T>): Promise<T> {
  await using server = await modelServer({ steps });
  const result = await run(server);
  server.assertSpent();
  return result;
}

describe.each(wires)("the $name wire", (wire) => {
  const finish = finishes[wire.name];

  describe.each([true, false])("with stream: %s", (stream) => {
    const reply = (moves: Moves): Promise<Parsed> =>
      serving([moves], async (server) => {
        const { status, body, contentType } = await ask(server, wire, { stream });
        expect({ status, contentType }).toEqual({
          status: 200,
          contentType: stream ? "text/event-stream" : "application/json",
        });
        return wire.parse(body, stream);
      });

    it("the model server sends text and usage", async () => {
      expect(await reply(says("Grüße 😀", { chunkSize: 2, usage }))).toEqual({
        ...nothing,
        text: "Grüße 😀",
        finish: finish.done,
        usage: wire.usage(usage),
      });
    });

    it("the model server calls tools beside text and reasoning", async () => {
      expect(await reply(thinks("hm", says("I look."), calls(["view", { path: "a" }], ["view", {}])))).toEqual({
        ...nothing,
        text: "I look.",
        reasoning: "hm",
        calls: [
          { id: "call_view_1", name: "view", arguments: '{"path":"a"}' },
          { id: "call_view_2", name: "view", arguments: "{}" },
        ],
        finish: finish.tools,
      });
    });

    it("the model server sends deltas of arguments as they are scripted", async () => {
      const delta = { type: "call_delta", toolCallId: "c", name: "view" } as const;
      const moves: Moves = [
        { ...delta, delta: '{"a"' },
        { ...delta, delta: ":1}" },
        { type: "call", call: { toolCallId: "c", name: "view", arguments: { a: 1 } } },
        { type: "end", stop: "length" },
      ];
      expect(await reply(moves)).toEqual({
        ...nothing,
        calls: [{ id: "c", name: "view", arguments: '{"a":1}' }],
        finish: finish.length,
      });
    });

    it("the model server ends a reply for reasons of content", async () => {
      expect(await reply(fails("content_filter"))).toEqual({ ...nothing, finish: finish.filter });
    });

    it("the model server waits for a promise before it continues", async () => {
      const until = new Promise((resolve) => setTimeout(resolve, 10));
      expect(await reply(stalls(until, says("on")))).toEqual({ ...nothing, text: "on", finish: finish.done });
    });

    it("the model server answers a scripted failure with its status", async () => {
      const failures: [Moves, number, string | null][] = [
        [fails(500), 500, null],
        [fails(401), 401, null],
        [fails("context_length"), 400, null],
        [fails(404), 404, null],
        [fails("internal"), 400, null],
        [rateLimited(1500), 429, "2"],
      ];
      for (const [moves, status, retryAfter] of failures) {
        await serving([moves], async (server) => {
          const answer = await ask(server, wire, { stream });
          expect({ status: answer.status, retryAfter: answer.headers.get("retry-after") }).toEqual({
            status,
            retryAfter,
          });
          expect(wire.errorMessage(JSON.parse(answer.body))).toMatch(/^faux: /);
        });
      }
    });

    it("the model server breaks the connection for a network failure and for a throw", async () => {
      for (const moves of [fails("network"), throws(new Error("crash")), together(breaksOff("a"), fails("network"))]) {
        await serving([moves], async (server) => {
          await expect(ask(server, wire, { stream })).rejects.toThrow();
        });
      }
    });

    it("the model server stays silent until the client gives up", async () => {
      const silent = [stalls(), fails("timeout"), together(breaksOff("a"), stalls())];
      await Promise.all(
        silent.map((moves) =>
          serving([moves], async (server) => {
            const stop = new AbortController();
            const asked = ask(server, wire, { stream, signal: stop.signal });
            asked.catch(() => undefined);
            await expect.poll(() => server.requests.length).toBe(1);
            stop.abort(new Error("the client gave up"));
            await expect(asked).rejects.toThrow("the client gave up");
          }),
        ),
      );
    });
  });

  it("the model server breaks off: a stream without its finish, or a body that is not whole", async () => {
    await serving([breaksOff("half a"), breaksOff("half a")], async (server) => {
      const streamed = await ask(server, wire, { stream: true });
      expect(wire.parse(streamed.body, true)).toEqual({ ...nothing, text: "half a" });
      const whole = await ask(server, wire, { stream: false });
      expect(() => JSON.parse(whole.body)).toThrow();
    });
  });

  it("the model server reports a failure in the middle of a stream", async () => {
    await serving([together(breaksOff("half"), fails(529, { message: "busy" }))], async (server) => {
      const { status, body } = await ask(server, wire, { stream: true });
      expect(status).toBe(200);
      expect(wire.errorMessage(wire.lastEvent(body))).toBe("busy");
    });
  });

  it("the model server sends argument text that is not JSON as it is", async () => {
    await serving([callsWithText("view", '{"path":')], async (server) => {
      const { body } = await ask(server, wire, { stream: true });
      expect(wire.parse(body, true).calls).toEqual([{ id: "call_view_1", name: "view", arguments: '{"path":' }]);
    });
  });

  it("the model server sends reasoning that only the provider can read", async () => {
    const reply = thinks("hm").map((move) =>
      move.type === "end" ? { ...move, reasoning: { opaque: "secret-signature" } } : move,
    );
    await serving([reply, reply], async (server) => {
      for (const stream of [true, false]) {
        const { body } = await ask(server, wire, { stream });
        // Chat completions has no field for it.
        expect(body.includes("secret-signature")).toBe(wire.name !== "chat");
      }
    });
  });

  it("the model server reads the request in the terms of the provider port", async () => {
    await serving([says("a")], async (server) => {
      await ask(server, wire, { stream: false, body: wire.conversation });
      expect(server.requests).toEqual([
        {
          number: 1,
          method: "POST",
          path: `/v1${wire.path}`,
          headers: expect.objectContaining({ "content-type": "application/json", "x-test": "yes" }),
          body: { ...wire.conversation, model: "m", stream: false },
          atMs: expect.any(Number),
          wire: wire.name,
          request: {
            model: "m",
            stream: false,
            system: "You are the explorer.",
            maxOutputTokens: 99,
            messages: expect.any(Array),
            tools: [{ name: "view", description: "Views.", parameters: { type: "object" } }],
          },
        },
      ]);
      const messages = server.requests[0]?.request?.messages ?? [];
      expect(messages.map(({ role }) => role).join(" ")).toMatch(/^user assistant (assistant )?tool user$/);
      expect(messages.flatMap((message) => (message.role === "assistant" ? message.calls : []))).toEqual([
        { toolCallId: "c1", name: "view", arguments: { path: "a" } },
      ]);
      expect(messages.filter(({ role }) => role === "tool")).toEqual([
        { role: "tool", toolCallId: "c1", content: "seen", isError: false },
      ]);
      expect(messages.at(-1)).toEqual({ role: "user", content: "go on" });
    });
  });

  it("the model server plays functions of the request and steps of one agent", async () => {
    const steps: HttpStep[] = [(request) => says(request.system.toUpperCase()), forAgent("explorer", says("mine"))];
    await serving(steps, async (server) => {
      const first = await ask(server, wire, { stream: true, body: wire.conversation });
      const second = await ask(server, wire, { stream: true, body: wire.prompt("Plain.") });
      expect([first, second].map(({ body }) => wire.parse(body, true).text)).toEqual(["mine", "PLAIN."]);
    });
  });

  it("the model server refuses an extra call with a final error, and reports it again at the end", async () => {
    await using server = await modelServer({ steps: [] });
    const { status, body } = await ask(server, wire, { stream: true, body: wire.prompt("", "hello there") });
    const message = 'model server: unexpected call 1 (the script has 0 steps); the last user message was "hello there"';
    expect({ status, message: wire.errorMessage(JSON.parse(body)) }).toEqual({ status: 400, message });
    expect(() => server.assertSpent()).toThrow(message);
  });
});

describe("the model server", () => {
  const chat = wires[0];

  it("the model server fails on unused steps and on faults that never occurred", async () => {
    await using idle = await modelServer({ steps: [says("a")] });
    expect(() => idle.assertSpent()).toThrow("model server: 1 step unused after 0 calls");
    await using server = await modelServer({ steps: [withFaults(says("a"), { stall: 99 })] });
    await ask(server, chat, { stream: true });
    expect(() => server.assertSpent()).toThrow("the fault stall at 99 never came about");
  });

  it("the model server refuses to send a retry, which is not an event of a wire", async () => {
    const { error } = fails(500)[0] as Extract<Moves[number], { type: "end" }>;
    if (!error) throw new Error("no error");
    await using server = await modelServer({ steps: [[{ type: "retry", attempt: 1, delayMs: 1, error }]] });
    expect((await ask(server, chat, { stream: true })).status).toBe(400);
    expect(() => server.assertSpent()).toThrow('a "retry" cannot be sent over HTTP');
  });

  it("the model server shares one plan among several servers", async () => {
    const plan = httpPlan(says("one"), says("two"));
    await using first = await modelServer({ plan });
    await using second = await modelServer({ plan });
    const texts = [];
    for (const server of [second, first])
      texts.push(chat.parse((await ask(server, chat, { stream: true })).body, true).text);
    expect(texts).toEqual(["one", "two"]);
    plan.assertSpent();
  });

  it("the model server lets a handler decide for every call, without end", async () => {
    await using server = await modelServer({
      handler: ({ number }) => withUsage(calls(["view"], ["view"]), { inputTokens: number }),
    });
    const ids = [];
    for (let round = 0; round < 2; round++) {
      ids.push(...chat.parse((await ask(server, chat, { stream: true })).body, true).calls.map(({ id }) => id));
    }
    expect(ids).toEqual(["call_view_1", "call_view_2", "call_view_3", "call_view_4"]);
    server.assertSpent();
  });

  it("the model server keeps usage from a stream that did not ask for it", async () => {
    await serving([says("a", { usage })], async (server) => {
      const body = { ...chat.prompt(), stream_options: {} };
      expect(chat.parse((await ask(server, chat, { stream: true, body })).body, true).usage).toBeUndefined();
    });
  });

  it("the model server lists models, and reports its endpoints on other requests", async () => {
    await using server = await modelServer({ models: ["a", "b/c"] });
    const get = async (path: string, init?: RequestInit): Promise<[number, unknown]> => {
      const response = await fetch(`${server.baseUrl}${path}`, init);
      return [response.status, await response.json()];
    };
    expect(await get("/models")).toMatchObject([200, { object: "list", data: [{ id: "a" }, { id: "b/c" }] }]);
    expect(await get("/models/b%2Fc")).toMatchObject([200, { id: "b/c" }]);
    expect(await get("/embeddings", { method: "POST", body: "{}" })).toMatchObject([
      404,
      { error: { message: expect.stringContaining("nothing at POST /v1/embeddings; it knows GET /models") } },
    ]);
    expect(await get("/responses", { method: "POST", body: "[" })).toMatchObject([
      400,
      { error: { message: "the body is not a JSON object" } },
    ]);
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toHaveLength(4);
  });

  it("the model server drops old requests when it is configured to keep few", async () => {
    await using server = await modelServer({ keepRequests: 2 });
    for (let round = 0; round < 3; round++) await (await fetch(`${server.url}/models`)).text();
    expect(server.requests.map(({ number }) => number)).toEqual([2, 3]);
  });

  it("the model server closes at once with replies still open, twice if need be", async () => {
    const server = await modelServer({ steps: [stalls(), withFaults(says("a"), { pingsOnlyEveryMs: 5 })] });
    const open = [1, 2].map(() => ask(server, chat, { stream: true }).catch(() => "broken"));
    while (server.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    const before = performance.now();
    await server.close();
    await server.close();
    expect(performance.now() - before).toBeLessThan(HANG_MS);
    expect(await Promise.all(open)).toEqual(["broken", "broken"]);
    await expect(fetch(`${server.url}/models`)).rejects.toThrow();
  });

  it("the model server plays the same steps as the faux model", async () => {
    const steps = [together(says("a"), calls(["view", { path: "p" }])), says("b")];
    const model = fauxModel(...steps);
    const told: { text: string; calls: string[] }[] = [];
    for (const _ of steps) {
      const reply = { text: "", calls: [] as string[] };
      const asked = { model: "m", system: "", messages: [], tools: [], stream: true };
      for await (const event of model.stream(asked, new AbortController().signal)) {
        if (event.type === "text") reply.text += event.delta;
        if (event.type === "call") reply.calls.push(event.call.toolCallId);
      }
      told.push(reply);
    }
    for (const wire of wires) {
      await serving(steps, async (server) => {
        for (const reply of told) {
          const parsed = wire.parse((await ask(server, wire, { stream: true })).body, true);
          expect({ text: parsed.text, calls: parsed.calls.map(({ id }) => id) }).toEqual(reply);
        }
      });
    }
  });
});
