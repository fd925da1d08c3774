import { describe, expect, it } from "vitest";
import { entryOf } from "../../src/model/ai-sdk/ai-sdk-load.ts";
import { resolveModel } from "../../src/model/catalog.ts";
import type { ModelEvent, ModelRequest } from "../../src/model/provider.ts";
import { readSettings } from "../../src/model/settings/settings.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { collect, request } from "./scripted.ts";

const live = new AbortController().signal;

/** A package as a user would install it. It answers with the parts given, and keeps what it was asked on `globalThis`. */
function packageFiles(
  name: string,
  parts: readonly object[],
  version = "v2",
  stream = "parts",
): Record<string, string> {
  const home = `node_modules/${name}`;
  return {
    [`${home}/package.json`]: JSON.stringify({ name, exports: { ".": { types: "./x.d.ts", import: "./main.mjs" } } }),
    [`${home}/main.mjs`]: `
      const parts = ${JSON.stringify(parts)};
      class APICallError extends Error { name = "AI_APICallError"; }
      const streams = {
        parts: () => new ReadableStream({ start(c) { for (const part of parts) c.enqueue(part); c.close(); } }),
        hanging: () => new ReadableStream({ start(c) { for (const part of parts) c.enqueue(part); } }),
        slow: () => new ReadableStream({ async start(c) {
          for (const part of parts) { await new Promise((resolve) => setTimeout(resolve, 120)); c.enqueue(part); }
          c.close();
        } }),
        refusing() { throw Object.assign(new APICallError("slow down, sk-secret"), {
          statusCode: 429, responseHeaders: { "retry-after": "3" }, responseBody: "", isRetryable: true }); },
        broken() { throw Object.assign(new APICallError("cannot connect"), { cause: { code: "ECONNREFUSED" } }); },
      };
      export function createFake(settings) {
        const provider = (modelId) => ({
          specificationVersion: ${JSON.stringify(version)}, provider: "fake", modelId,
          async doStream(options) {
            const { abortSignal, ...rest } = options;
            globalThis.asked = { settings: { ...settings, fetch: undefined }, modelId, options: rest };
            return { stream: streams[${JSON.stringify(stream)}]() };
          },
        });
        provider.languageModel = provider;
        return provider;
      }
      export const createOther = () => { throw new Error("the wrong factory"); };
      export const VERSION = "1";`,
  };
}

const finish = { type: "finish", finishReason: "stop", usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } };

interface Options {
  readonly parts?: readonly object[];
  readonly version?: string;
  readonly stream?: string;
  readonly asked?: Partial<ModelRequest>;
  readonly signal?: AbortSignal;
}

/** Installs the package in a folder of its own, sends one request through it, and returns both sides. */
async function talk(options: Options): Promise<{ events: ModelEvent[]; asked: unknown }> {
  const name = "@ai-sdk/fake";
  await using folder = await tempFolder(packageFiles(name, options.parts ?? [], options.version, options.stream));
  const provider = {
    npm: name,
    apiKey: "sk-secret",
    baseUrl: "http://127.0.0.1:1",
    headers: { a: "b" },
    options: { region: "x" },
  };
  const text = JSON.stringify({ providers: { mine: { ...provider, models: { m: {} } } } });
  const settings = readSettings({ environment: {}, providersFile: { path: "p", text } });
  const bounds = { idleMs: 300, totalMs: 5_000 };
  const resolved = await resolveModel(settings, "mine/m", { packagesFolder: folder.path, bounds });
  const asked = { ...request, ...options.asked, model: resolved.model };
  const events = await collect(resolved.provider.stream(asked, options.signal ?? live));
  return { events, asked: (globalThis as { asked?: unknown }).asked };
}

describe("a provider package of the user", () => {
  it("a provider package streams text, reasoning and calls (interface version 2)", async () => {
    const { events } = await talk({
      parts: [
        { type: "stream-start", warnings: [] },
        { type: "reasoning-start", id: "r1" },
        { type: "reasoning-delta", id: "r1", delta: "hm" },
        { type: "reasoning-end", id: "r1", providerMetadata: { fake: { signature: "s" } } },
        { type: "text-start", id: "t1" },
        { type: "text-delta", id: "t1", delta: "Hello" },
        { type: "text-end", id: "t1" },
        { type: "tool-input-start", id: "c1", toolName: "read" },
        { type: "tool-input-delta", id: "c1", delta: '{"path":"a"}' },
        { type: "tool-input-end", id: "c1" },
        { type: "tool-call", toolCallId: "c1", toolName: "read", input: '{"path":"a"}' },
        { type: "tool-call", toolCallId: "c2", toolName: "read", input: "{oops" },
        { type: "tool-call", toolCallId: "c3", toolName: "web", input: "{}", providerExecuted: true },
        {
          type: "finish",
          finishReason: "tool-calls",
          usage: { inputTokens: 100, outputTokens: 20, totalTokens: 120, reasoningTokens: 5, cachedInputTokens: 60 },
        },
      ],
    });
    expect(events).toEqual([
      { type: "reasoning", delta: "hm" },
      { type: "text", delta: "Hello" },
      { type: "call_delta", toolCallId: "c1", name: "read", delta: '{"path":"a"}' },
      { type: "call", call: { toolCallId: "c1", name: "read", arguments: { path: "a" } } },
      {
        type: "call",
        call: { toolCallId: "c2", name: "read", arguments: {}, argumentsError: expect.stringContaining("not JSON") },
      },
      {
        type: "end",
        stop: "tools",
        usage: { inputTokens: 100, outputTokens: 20, cacheReadTokens: 60, cacheWriteTokens: 0, reasoningTokens: 5 },
        reasoning: {
          text: "hm",
          opaque: '[{"type":"reasoning","text":"hm","providerOptions":{"fake":{"signature":"s"}}}]',
          wireField: "ai-sdk:@ai-sdk/fake",
        },
      },
    ]);
  });

  it("a provider package counts usage as version 3 of the interface does", async () => {
    const { events } = await talk({
      version: "v3",
      parts: [
        { type: "text-delta", id: "t", delta: "x" },
        {
          type: "finish",
          finishReason: { unified: "length", raw: "max_tokens" },
          usage: {
            inputTokens: { total: 100, noCache: 30, cacheRead: 60, cacheWrite: 10 },
            outputTokens: { total: 20, text: 15, reasoning: 5 },
          },
        },
      ],
    });
    expect(events.at(-1)).toEqual({
      type: "end",
      stop: "length",
      usage: { inputTokens: 100, outputTokens: 20, cacheReadTokens: 60, cacheWriteTokens: 10, reasoningTokens: 5 },
    });
  });

  it("a provider package gets the provider data of a call back with that call", async () => {
    const providerMetadata = { google: { thoughtSignature: "s1" } };
    const { events } = await talk({
      parts: [{ type: "tool-call", toolCallId: "c1", toolName: "read", input: "{}", providerMetadata }, finish],
    });
    const end = events.at(-1);
    const reasoning = end?.type === "end" ? end.reasoning : undefined;
    const { asked } = await talk({
      parts: [finish],
      asked: {
        messages: [
          { role: "user", content: "look" },
          {
            role: "assistant",
            content: "",
            calls: [
              { toolCallId: "c1", name: "read", arguments: {} },
              { toolCallId: "c2", name: "read", arguments: {} },
            ],
            ...(reasoning && { reasoning }),
          },
        ],
      },
    });
    expect(asked).toMatchObject({
      options: {
        prompt: [
          {},
          {
            content: [
              {
                type: "tool-call",
                toolCallId: "c1",
                toolName: "read",
                input: {},
                providerOptions: providerMetadata,
              },
              { type: "tool-call", toolCallId: "c2", toolName: "read", input: {} },
            ],
          },
        ],
      },
    });
  });

  it("a provider package is asked for structured output in its own format", async () => {
    const schema = { type: "object" };
    const { asked } = await talk({
      parts: [finish],
      asked: { responseFormat: { type: "json_schema", jsonSchema: { name: "sum", schema } } },
    });
    expect(asked).toMatchObject({ options: { responseFormat: { type: "json", name: "sum", schema } } });
  });

  it("a provider package gets the key, the address, its options, and the conversation in its own format", async () => {
    const opaque = '[{"type":"reasoning","text":"hm","providerOptions":{"fake":{"signature":"s"}}}]';
    const { asked } = await talk({
      parts: [finish],
      asked: {
        system: "Be brief.",
        maxOutputTokens: 50,
        tools: [{ name: "read", description: "Reads.", parameters: { type: "object" } }],
        messages: [
          { role: "user", content: "look", images: [{ mimeType: "image/png", data: "AAAA" }] },
          {
            role: "assistant",
            content: "I look.",
            calls: [
              { toolCallId: "c1", name: "read", arguments: { path: "a" } },
              { toolCallId: "c2", name: "list", arguments: {} },
            ],
            reasoning: { opaque, wireField: "ai-sdk:@ai-sdk/fake" },
          },
          {
            role: "tool",
            toolCallId: "c1",
            content: "A",
            isError: false,
            images: [{ mimeType: "image/png", data: "BBBB" }],
          },
          { role: "tool", toolCallId: "c2", content: "no", isError: true },
          { role: "assistant", content: "Done.", calls: [], reasoning: { opaque: "[{}]", wireField: "another" } },
        ],
      },
    });
    expect(asked).toEqual({
      modelId: "m",
      settings: { name: "mine", apiKey: "sk-secret", baseURL: "http://127.0.0.1:1", region: "x" },
      options: {
        headers: { a: "b" },
        includeRawChunks: false,
        maxOutputTokens: 50,
        toolChoice: { type: "auto" },
        tools: [{ type: "function", name: "read", description: "Reads.", inputSchema: { type: "object" } }],
        prompt: [
          { role: "system", content: "Be brief." },
          {
            role: "user",
            content: [
              { type: "text", text: "look" },
              { type: "file", mediaType: "image/png", data: "AAAA" },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "reasoning", text: "hm", providerOptions: { fake: { signature: "s" } } },
              { type: "text", text: "I look." },
              { type: "tool-call", toolCallId: "c1", toolName: "read", input: { path: "a" } },
              { type: "tool-call", toolCallId: "c2", toolName: "list", input: {} },
            ],
          },
          {
            role: "tool",
            content: [
              { type: "tool-result", toolCallId: "c1", toolName: "read", output: { type: "text", value: "A" } },
              { type: "tool-result", toolCallId: "c2", toolName: "list", output: { type: "error-text", value: "no" } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "text", text: "The pictures of the results above:" },
              { type: "file", mediaType: "image/png", data: "BBBB" },
            ],
          },
          { role: "assistant", content: [{ type: "text", text: "Done." }] },
        ],
      },
    });
  });

  it.each([
    [
      "refuses for now",
      { stream: "refusing" },
      { kind: "rate_limit", statusCode: 429, retryAfterMs: 3_000, message: "mine: slow down, [key] (HTTP 429)" },
    ],
    ["cannot be reached", { stream: "broken" }, { kind: "network" }],
    ["breaks off", { parts: [{ type: "text-delta", id: "t", delta: "x" }] }, { kind: "protocol" }],
    ["filters", { parts: [{ ...finish, finishReason: "content-filter" }] }, { kind: "content_filter" }],
    [
      "reports an error",
      { parts: [{ type: "error", error: { message: "overloaded", type: "overloaded_error" } }] },
      { kind: "rate_limit" },
    ],
    [
      "hangs",
      { stream: "hanging", parts: [{ type: "text-delta", id: "t", delta: "x" }] },
      { kind: "timeout", message: "mine: nothing came for 0.3 s" },
    ],
    [
      "speaks an older interface",
      { version: "v1" },
      { kind: "internal", hint: "Install a release of the package that implements v2 or v3." },
    ],
  ])("a provider package ends with an error that names the cause when it %s", async (_, options, error) => {
    const { events } = await talk(options);
    expect(events.at(-1)).toMatchObject({ type: "end", stop: "error", error });
  });

  it("a provider package may be slow while it sends something", async () => {
    const part = { type: "text-delta", id: "t", delta: "x" };
    const { events } = await talk({ stream: "slow", parts: [part, part, part, finish] });
    expect(events.map((event) => event.type)).toEqual(["text", "text", "text", "end"]);
    expect(events.at(-1)).toMatchObject({ stop: "done" });
  });

  it("a provider package that hangs is abandoned at once when the call is aborted", async () => {
    const { events } = await talk({ stream: "hanging", signal: AbortSignal.timeout(50) });
    expect(events).toEqual([{ type: "end", stop: "aborted" }]);
  });

  it("a provider package is searched for in the user's folder only, and the error has the install command", async () => {
    await using folder = await tempFolder({ "project/node_modules/@ai-sdk/none/package.json": "{}" });
    const text = JSON.stringify({ providers: { mine: { npm: "@ai-sdk/none", models: { m: {} } } } });
    const settings = readSettings({ environment: {}, providersFile: { path: "p", text } });
    await expect(resolveModel(settings, "mine/m", { packagesFolder: folder.at("home") })).rejects.toMatchObject({
      kind: "configuration",
      message: "The provider package @ai-sdk/none is not installed",
      hint: `Run: npm install --prefix ${JSON.stringify(folder.at("home"))} @ai-sdk/none`,
    });
  });
});

it.each([
  [{ main: "./a.js" }, "./a.js"],
  [{}, "index.js"],
  [{ exports: "./a.mjs" }, "./a.mjs"],
  [{ exports: { import: "./a.mjs", require: "./a.cjs" } }, "./a.mjs"],
  [{ exports: { ".": { types: "./a.d.ts", node: { require: "./a.cjs" } }, "./b": "./b.js" } }, "./a.cjs"],
  [{ exports: { ".": [{ browser: "./no.js" }, "./a.js"] } }, "./a.js"],
  [{ exports: { ".": { types: "./a.d.ts" } } }, undefined],
  [null, undefined],
])("the entry of a package with %j is resolved as import would", (manifest, entry) => {
  expect(entryOf(manifest)).toBe(entry);
});
