import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Stamp, systemStamp } from "../../src/lib/stamp.ts";
import type { GivenProviders } from "../../src/model/given-providers.ts";
import type { RequestOrigin } from "../../src/model/provider.ts";
import type { ModelFetch } from "../../src/model/wire/endpoint.ts";
import { createRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import type { Session } from "../../src/session/session.ts";
import {
  calls,
  type HttpStep,
  httpStatus,
  type ModelServer,
  modelServer,
  says,
  tempFolder,
} from "../../src/testing/index.ts";
import { dataOf } from "../support/stage.ts";

interface Scene {
  readonly server: ModelServer;
  readonly runtime: Runtime;
  readonly home: string;
  open(request?: Partial<SessionRequest>): Promise<Session>;
}

/** A whole runtime in an empty folder, and a model server that nobody has configured. */
async function scene(
  steps: readonly HttpStep[],
  act: (scene: Scene) => Promise<void>,
  stamp: Stamp = systemStamp,
): Promise<void> {
  await using server = await modelServer({ steps });
  await using folder = await tempFolder();
  const home = join(folder.path, "home");
  const runtime = createRuntime({ environment: { HOME: folder.path, TROUPE_NO_DISCOVERY: "1" }, home, stamp });
  const sessions: Session[] = [];
  try {
    await act({
      ...{ server, runtime, home },
      async open(request = {}) {
        const session = await runtime.createSession({ cwd: folder.path, permissions: { allTools: true }, ...request });
        sessions.push(session);
        return session;
      },
    });
  } finally {
    for (const session of sessions) await session.close();
    await runtime.close();
  }
}

/** Nobody waits between attempts. */
const hurried: Stamp = { ...systemStamp, sleep: async () => undefined };

const KEY = "sk-brought-by-a-program-1234567890";
const answer = (session: Session, prompt = "hello") => session.sendAndWait({ prompt });

describe("a provider for a whole session", () => {
  it.each([
    { wire: "completions", given: {}, path: "/v1/chat/completions", sign: { authorization: `Bearer ${KEY}` } },
    {
      wire: "responses",
      given: { wireApi: "responses" },
      path: "/v1/responses",
      sign: { authorization: `Bearer ${KEY}` },
    },
    { wire: "anthropic", given: { type: "anthropic" }, path: "/v1/messages", sign: { "x-api-key": KEY } },
    { wire: "azure", given: { type: "azure" }, path: "/openai/v1/chat/completions", sign: { "api-key": KEY } },
    {
      wire: "azure by deployment",
      given: { type: "azure", azure: { apiVersion: "2024-10-21" } },
      path: "/openai/deployments/wire-name/chat/completions?api-version=2024-10-21",
      sign: { "api-key": KEY },
    },
  ] as const)(
    "SDK-37 a session's own provider speaks $wire with its key, headers and wire model",
    ({ given, path, sign }) =>
      scene([says("hi")], async ({ server, open }) => {
        const session = await open({
          model: {
            name: "our-name",
            providers: {
              provider: {
                baseUrl: "type" in given && given.type === "azure" ? server.url : server.baseUrl,
                apiKey: KEY,
                headers: { "X-Team": "stage" },
                wireModel: "wire-name",
                ...given,
              },
            },
          },
          client: { name: "my-program" },
        });
        expect(server.requests).toEqual([]);
        expect(await answer(session)).toEqual({ kind: "done", answer: "hi" });
        const [request] = server.requests;
        expect(request).toMatchObject({ path, body: { model: "wire-name" }, headers: { "x-team": "stage", ...sign } });
        expect(request?.headers["user-agent"]).toMatch(/^my-program troupe\//);
        expect(dataOf(session.events, "session.start")[0]?.selectedModel).toBe("our-name");
        expect(dataOf(session.events, "session.model_change")).toEqual([{ newModel: "our-name", source: "startup" }]);
      }),
  );

  it("a session's own provider opens a session without a model, and fails at the first message", () =>
    scene([], async ({ server, open }) => {
      const session = await open({ model: { providers: { provider: { baseUrl: server.baseUrl, apiKey: KEY } } } });
      const outcome = await answer(session);
      expect(outcome).toMatchObject({ kind: "error", error: { message: "The session has a provider but no model." } });
      expect(server.requests).toEqual([]);
    }));

  it("a session's own provider has its own default model when the session names none", () =>
    scene([says("hi")], async ({ server, open }) => {
      const session = await open({
        model: { providers: { provider: { baseUrl: server.baseUrl, modelId: "theirs" } } },
      });
      await answer(session);
      expect(server.requests[0]?.body).toMatchObject({ model: "theirs" });
      expect(server.requests[0]?.headers.authorization).toBeUndefined();
    }));

  it("the key of a session's own provider is stored in no file", () =>
    scene([says(`your key is ${KEY}`)], async ({ server, open, home }) => {
      const session = await open({
        model: { name: "m", providers: { provider: { baseUrl: server.baseUrl, apiKey: KEY } } },
      });
      await answer(session);
      await session.close();
      const files = await readdir(home, { recursive: true, withFileTypes: true });
      const texts = files
        .filter((file) => file.isFile())
        .map((file) => readFile(join(file.parentPath, file.name), "utf8"));
      expect((await Promise.all(texts)).join("\n")).not.toContain(KEY);
    }));

  it("a session's own provider asks for a token before each request, and stores none", () =>
    scene([httpStatus(500), says("one"), says("two")], async ({ server, open }) => {
      const asked: string[] = [];
      const session = await open({
        model: {
          name: "m",
          providers: {
            provider: { baseUrl: server.baseUrl, apiKey: "unused", hasBearerTokenProvider: true },
            getToken: async (name) => `token-${name}-${asked.push(name)}`,
          },
        },
      });
      await answer(session);
      await answer(session);
      const tokens = server.requests.map(({ headers }) => headers.authorization);
      expect(tokens).toEqual(["Bearer token-default-1", "Bearer token-default-2", "Bearer token-default-3"]);
    }));

  it("a session's own provider fails when the program gives no token", () =>
    scene([], async ({ server, open }) => {
      const session = await open({
        model: {
          name: "m",
          providers: {
            provider: { baseUrl: server.baseUrl, hasBearerTokenProvider: true },
            getToken: () => Promise.reject(new Error("signed out")),
          },
        },
      });
      expect(await answer(session)).toMatchObject({ kind: "error", error: { kind: "authentication" } });
      expect(server.requests).toEqual([]);
    }));

  it("a session's own provider serves the same model when the session is resumed", () =>
    scene([says("one"), says("two")], async ({ server, open, runtime }) => {
      const provider = { baseUrl: server.baseUrl, apiKey: KEY };
      const first = await open({ model: { name: "m", providers: { provider } } });
      await answer(first);
      await first.close();
      const again = await runtime.resumeSession(first.id, {
        cwd: first.workspace.cwd,
        model: { providers: { provider } },
      });
      await answer(again);
      await again.close();
      expect(server.requests.map(({ body }) => body)).toMatchObject([{ model: "m" }, { model: "m" }]);
    }));

  it("a session can be resumed without its own provider", () =>
    scene([says("one")], async ({ server, open, runtime }) => {
      const first = await open({
        model: { name: "m", providers: { provider: { baseUrl: server.baseUrl, apiKey: KEY } } },
      });
      await answer(first);
      await first.close();
      const again = await runtime.resumeSession(first.id, { cwd: first.workspace.cwd });
      expect(again.mainAgent.model.model).toBe("understudy");
      await again.close();
    }));
});

describe("a registry of providers and models", () => {
  const registry = ({ baseUrl }: ModelServer): GivenProviders => ({
    providers: [
      { name: "alpha", baseUrl, apiKey: "alpha-key", headers: { "X-Provider": "alpha" } },
      { name: "beta", type: "anthropic", baseUrl, bearerToken: "beta-token", headers: { "X-Provider": "beta" } },
    ],
    models: [
      { id: "sonnet", provider: "alpha", wireModel: "wire-sonnet", maxPromptTokens: 1000, maxOutputTokens: 24 },
      { id: "haiku", provider: "alpha", name: "Haiku", capabilities: { supports: { vision: false } } },
      { id: "opus", provider: "beta", wireModel: "wire-opus" },
    ],
  });

  it.each([
    ["alpha/sonnet", "wire-sonnet", { "x-provider": "alpha", authorization: "Bearer alpha-key" }],
    ["alpha/haiku", "haiku", { "x-provider": "alpha", authorization: "Bearer alpha-key" }],
    ["beta/opus", "wire-opus", { "x-provider": "beta", authorization: "Bearer beta-token" }],
  ])("the model %s of a registry is requested from its provider by its wire name", (model, wire, headers) =>
    scene([says("hi")], async ({ server, open }) => {
      const session = await open({ model: { name: model, providers: registry(server) } });
      await answer(session);
      expect(server.requests).toMatchObject([{ body: { model: wire }, headers }]);
      expect(dataOf(session.events, "session.model_change")).toEqual([{ newModel: model, source: "startup" }]);
    }),
  );

  it("an agent runs on the registry's model that its definition names", () =>
    scene(
      [
        calls(["task", { name: "r", agent_type: "reader", description: "reads", prompt: "read", mode: "sync" }]),
        says("read"),
        says("done"),
      ],
      async ({ server, open, home }) => {
        const { mkdir, writeFile } = await import("node:fs/promises");
        await mkdir(join(home, "agents"), { recursive: true });
        const text = "---\nname: reader\ndescription: reads\nmodel: beta/opus\n---\nRead.";
        await writeFile(join(home, "agents/reader.md"), text);
        const session = await open({ model: { name: "alpha/sonnet", providers: registry(server) } });
        expect(await answer(session)).toEqual({ kind: "done", answer: "done" });
        const models = server.requests.map(({ request }) => request?.model);
        expect(models).toEqual(["wire-sonnet", "wire-opus", "wire-sonnet"]);
      },
    ));

  it("a registry of models is listed with the configured models, under the names of the session", () =>
    scene([], async ({ server, open }) => {
      const session = await open({ model: { providers: registry(server) } });
      const rows = (await session.mainAgent.selection?.list()) ?? [];
      const own = rows.filter(({ provider }) => provider === "alpha" || provider === "beta");
      expect(own.map(({ id, name, contextWindow, vision }) => ({ id, name, contextWindow, vision }))).toEqual([
        { id: "alpha/sonnet", name: "sonnet", contextWindow: 1024, vision: undefined },
        { id: "alpha/haiku", name: "Haiku", contextWindow: null, vision: false },
        { id: "beta/opus", name: "opus", contextWindow: null, vision: undefined },
      ]);
      expect(server.requests).toEqual([]);
    }));

  it("a registry of models grows while the session is open", () =>
    scene([says("hi")], async ({ server, open }) => {
      const session = await open();
      const seat = session.mainAgent.selection;
      const added = await seat?.add({
        providers: [{ name: "late", baseUrl: server.baseUrl }],
        models: [{ id: "one", provider: "late", name: "The one" }],
      });
      expect(added).toMatchObject([{ id: "late/one", name: "The one" }]);
      await seat?.select("late/one");
      expect(await answer(session)).toEqual({ kind: "done", answer: "hi" });
      const wrong = seat?.add({ models: [{ id: "two", provider: "nobody" }] });
      await expect(wrong).rejects.toThrow(/"nobody", which is not given/);
      expect(seat?.current.id).toBe("late/one");
    }));

  it.each([
    [
      "both kinds at once",
      { provider: { baseUrl: "http://127.0.0.1:9" }, models: [{ id: "a", provider: "b" }] },
      /not both/,
    ],
    ["a model of nobody", { models: [{ id: "a", provider: "b" }] }, /"b", which is not given/],
    ["an address that is none", { provider: { baseUrl: "somewhere" } }, /not an address/],
    [
      "a token from nobody",
      { provider: { baseUrl: "http://127.0.0.1:9", hasBearerTokenProvider: true } },
      /no source of tokens/,
    ],
    [
      "two of one name",
      {
        providers: [
          { name: "a", baseUrl: "http://127.0.0.1:9" },
          { name: "a", baseUrl: "http://127.0.0.1:9" },
        ],
      },
      /same name/,
    ],
  ] as const)("a registry of models refuses %s, before there is a session", (_, providers, why) =>
    scene([], async ({ open }) => {
      await expect(open({ model: { providers } })).rejects.toThrow(why);
    }),
  );
});

describe("the model of an open session", () => {
  const provider = (server: ModelServer) => ({ provider: { baseUrl: server.baseUrl, wireApi: "responses" as const } });

  it("the model of an open session changes from the next message on, with another effort and an event", () =>
    scene([says("one"), says("two")], async ({ server, open }) => {
      const session = await open({
        model: { name: "first", reasoningEffort: "low", providers: provider(server) },
      });
      await answer(session);
      await session.mainAgent.selection?.select("second", { reasoningEffort: "high", reasoningSummary: "concise" });
      await answer(session);
      expect(server.requests.map(({ body }) => body)).toMatchObject([
        { model: "first", reasoning: { effort: "low", summary: "auto" } },
        { model: "second", reasoning: { effort: "high", summary: "concise" } },
      ]);
      expect(dataOf(session.events, "session.model_change")).toEqual([
        { newModel: "first", source: "startup" },
        {
          newModel: "second",
          previousModel: "first",
          previousReasoningEffort: "low",
          reasoningEffort: "high",
          reasoningSummary: "concise",
        },
      ]);
      expect(dataOf(session.events, "session.start")[0]?.reasoningEffort).toBe("low");
    }));

  it("the model of an open session does not change when the requested model does not exist", () =>
    scene([], async ({ open }) => {
      const session = await open({ model: { name: "understudy" } });
      await expect(session.mainAgent.selection?.select("nobody/knows")).rejects.toThrow(/no model/);
      expect(session.mainAgent.model.model).toBe("understudy");
      expect(dataOf(session.events, "session.model_change")).toEqual([]);
    }));

  it("the model of an open session has the context window that the program states", () =>
    scene([says("hi")], async ({ server, open }) => {
      const limits = { max_prompt_tokens: 5000, max_output_tokens: 500 };
      const session = await open({
        model: { name: "m", providers: provider(server), capabilities: { limits } },
      });
      const told: number[] = [];
      session.subscribe((event) => event.type === "session.usage_info" && told.push(event.data.tokenLimit));
      await answer(session);
      expect(told).toEqual([5500]);
      expect(server.requests[0]?.body).toMatchObject({ max_output_tokens: 500 });
    }));

  it("the model of an open session receives images only while it is declared to accept them", () =>
    scene([calls(["view", { path: "dot.png" }]), says("one"), says("two"), says("three")], async ({ server, open }) => {
      const { writeFile } = await import("node:fs/promises");
      const session = await open({
        model: {
          name: "m",
          providers: { provider: { baseUrl: server.baseUrl } },
          capabilities: { supports: { vision: false } },
        },
      });
      await writeFile(join(session.workspace.cwd, "dot.png"), Buffer.from(DOT, "base64"));
      const seat = session.mainAgent.selection;
      await answer(session);
      await seat?.select("m", { capabilities: { supports: { vision: true } } });
      await answer(session);
      await seat?.change({ capabilities: { supports: { vision: false } } });
      await answer(session);
      const shown = server.requests.map(({ body }) => JSON.stringify(body).includes("image_url"));
      expect(shown).toEqual([false, false, true, false]);
    }));
});

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("requests of a session", () => {
  it("requests of a session carry the headers of a message, for that message, without the usual key", () =>
    scene([says("one"), says("two")], async ({ server, open }) => {
      const session = await open({
        model: { name: "m", providers: { provider: { baseUrl: server.baseUrl, apiKey: KEY } } },
      });
      const headers = { "X-Trace": "abc", Authorization: "Bearer stolen", "Content-Length": "3" };
      await session.sendAndWait({ prompt: "hello", answering: { headers } });
      await answer(session);
      expect(server.requests.map(({ headers }) => headers)).toMatchObject([
        { "x-trace": "abc", authorization: `Bearer ${KEY}` },
        { authorization: `Bearer ${KEY}` },
      ]);
      expect(server.requests[1]?.headers["x-trace"]).toBeUndefined();
    }));

  it.each([
    { replies: "whole" as const, streaming: false, stream: undefined },
    { replies: "whole" as const, streaming: true, stream: true },
    { replies: undefined, streaming: false, stream: true },
  ])(
    "requests of a session are streamed as requested: $replies, streaming $streaming",
    ({ replies, streaming, stream }) =>
      scene([says("hi")], async ({ server, open }) => {
        const session = await open({
          model: { name: "m", providers: { provider: { baseUrl: server.baseUrl } }, streaming, replies },
        });
        const deltas: string[] = [];
        session.subscribe((event) => event.type === "assistant.message_delta" && deltas.push(event.data.deltaContent));
        expect(await answer(session)).toEqual({ kind: "done", answer: "hi" });
        const [request] = server.requests;
        expect(Object.keys(request?.body ?? {}).includes("stream")).toBe(stream === true);
        expect(deltas.join("")).toEqual(streaming ? "hi" : "");
      }),
  );

  it("requests of a session go through the program when it carries them, with the agent they belong to", () =>
    scene(
      [
        calls(["task", { name: "a", agent_type: "explore", description: "looks", prompt: "look", mode: "sync" }]),
        says("seen"),
        says("done"),
      ],
      async ({ server, open }) => {
        const carried: (RequestOrigin | undefined)[] = [];
        const modelFetch: ModelFetch = (url, { origin, ...init }) => {
          carried.push(origin);
          return fetch(url.replace("http://far.invalid", server.url), init);
        };
        const provider = { baseUrl: "http://far.invalid/v1", apiKey: KEY };
        const session = await open({
          model: { name: "m", fetch: modelFetch, providers: { provider } },
        });
        expect(await answer(session)).toEqual({ kind: "done", answer: "done" });
        const main = { sessionId: session.id, agentId: session.id, interactionType: "conversation-agent" };
        const agent = {
          ...{ sessionId: session.id, agentId: "a", parentAgentId: session.id },
          interactionType: "conversation-subagent",
        };
        expect(carried).toEqual([main, agent, main]);
      },
    ));

  it("requests of a session are cancelled by the program when the answer is aborted", () =>
    scene([], async ({ open }) => {
      let heard: AbortSignal | null | undefined;
      const modelFetch: ModelFetch = (_, { signal }) => {
        heard = signal;
        return new Promise(() => undefined);
      };
      const session = await open({
        model: { name: "m", fetch: modelFetch, providers: { provider: { baseUrl: "http://far.invalid" } } },
      });
      const outcome = answer(session);
      await expect.poll(() => heard).toBeDefined();
      session.abort();
      expect(await outcome).toEqual({ kind: "aborted" });
      expect(heard?.aborted).toBe(true);
    }));

  it("requests of a session end the answer with an error when the program cannot carry them", () =>
    scene(
      [],
      async ({ open }) => {
        const modelFetch: ModelFetch = () => Promise.reject(new Error("no route"));
        const providers = { provider: { baseUrl: "http://far.invalid" } };
        const session = await open({ model: { name: "m", fetch: modelFetch, providers } });
        expect(await answer(session)).toMatchObject({ kind: "error", error: { kind: "network" } });
      },
      hurried,
    ));

  it("requests of a session read the body that the program returns, piece by piece", () =>
    scene([], async ({ open }) => {
      const events = ["Hel", "lo"].map((content) => ({ choices: [{ index: 0, delta: { content } }] }));
      const last = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
      const modelFetch: ModelFetch = async () => {
        const body = new ReadableStream<Uint8Array>({
          async start(stream) {
            for (const event of [...events, last]) {
              await new Promise((resolve) => setTimeout(resolve, 5));
              stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
            }
            stream.close();
          },
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      };
      const session = await open({
        model: {
          name: "m",
          fetch: modelFetch,
          streaming: true,
          providers: { provider: { baseUrl: "http://far.invalid" } },
        },
      });
      const deltas: string[] = [];
      session.subscribe((event) => event.type === "assistant.message_delta" && deltas.push(event.data.deltaContent));
      expect(await answer(session)).toEqual({ kind: "done", answer: "Hello" });
      expect(deltas.length).toBeGreaterThan(1);
    }));
});

describe("AI credits of a session", () => {
  it("AI credits of a session are reported with each prompt and end the work where the price is known", () =>
    scene([], async ({ open }) => {
      const session = await open({ model: { name: "understudy" }, limits: { credits: 30 } });
      expect(session.mainAgent.limits).toEqual({ costUsd: 0.3 });
      expect(dataOf(session.events, "session.start")[0]?.sessionLimits).toEqual({ maxAiCredits: 30 });
    }));

  it("AI credits of a session are reported as not enforceable where the price is unknown", () =>
    scene([says("hi")], async ({ server, open }) => {
      const session = await open({
        model: { name: "m", providers: { provider: { baseUrl: server.baseUrl } } },
        limits: { credits: 30 },
      });
      await answer(session);
      const messages = server.requests[0]?.request?.messages ?? [];
      expect(messages.map(({ content }) => content)).toEqual([
        "hello",
        expect.stringMatching(
          /^<session_limits_status>\nRemaining session limits: 30 AI credits\. .+\n<\/session_limits_status>$/,
        ),
      ]);
      expect(dataOf(session.events, "session.warning")).toMatchObject([{ warningType: "limits" }]);
      expect(session.record.title).toBe("hello");
    }));
});
