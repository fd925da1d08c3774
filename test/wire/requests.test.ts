import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import type { AssistantMessage, Message } from "../../src/protocol/message.ts";
import { dialectAt } from "./dialect-at.ts";
import { recordings } from "./recordings.ts";
import { collect, recorder, request } from "./support.ts";

const image = { mimeType: "image/png", data: "aW1n", description: "Image file at path /a.png" };
const answered: AssistantMessage = {
  role: "assistant",
  content: "I look.",
  calls: [
    { toolCallId: "t1", name: "view", arguments: { z: 1, a: "b" } },
    { toolCallId: "t2", name: "list", arguments: {} },
  ],
};
const messages: readonly Message[] = [
  { role: "user", content: "What is this?", images: [image] },
  answered,
  { role: "tool", toolCallId: "t1", content: "Viewed.", isError: false, images: [image] },
  { role: "tool", toolCallId: "t2", content: "No such folder", isError: true },
  { role: "user", content: "Go on" },
];
const parameters = { type: "object", properties: { path: { type: "string" } } };
const full: ModelRequest = {
  ...request,
  messages,
  tools: [
    { name: "view", description: "Shows a file", parameters },
    { name: "list", description: "Lists", parameters: {} },
  ],
  maxOutputTokens: 500,
  reasoningEffort: "high",
  cacheKey: "session-1",
};
const noParameters = { type: "object", properties: {} };
const url = "data:image/png;base64,aW1n";

/** What the wire sends for these requests, one after the other, over one provider. */
async function sent(wire: string, ...asked: ModelRequest[]) {
  const recording = recordings.find((one) => one.wire === wire);
  if (!recording) throw new Error(wire);
  const { place: endpoint, ...kept } = recorder(() => new Response(recording.stream));
  const provider = recording.provider(endpoint);
  for (const one of asked) await collect(provider, one);
  return kept;
}

describe("the body of a request", () => {
  test("the body of a request has the fields of openai-chat", async () => {
    const { bodies, urls, headers } = await sent("openai-chat", full);
    const imageParts = [
      { type: "text", text: "Image file at path /a.png" },
      { type: "image_url", image_url: { url } },
    ];
    expect(bodies).toEqual([
      {
        model: "m-1",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "What is this?" }, ...imageParts] },
          {
            role: "assistant",
            content: "I look.",
            tool_calls: [
              { id: "t1", type: "function", function: { name: "view", arguments: '{"z":1,"a":"b"}' } },
              { id: "t2", type: "function", function: { name: "list", arguments: "{}" } },
            ],
          },
          { role: "tool", tool_call_id: "t1", content: "Viewed." },
          { role: "tool", tool_call_id: "t2", content: "No such folder" },
          { role: "user", content: imageParts },
          { role: "user", content: "Go on" },
        ],
        tools: [
          { type: "function", function: { name: "view", description: "Shows a file", parameters } },
          { type: "function", function: { name: "list", description: "Lists", parameters: noParameters } },
        ],
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 500,
        reasoning_effort: "high",
      },
    ]);
    expect(urls).toEqual(["http://127.0.0.1:9/chat/completions"]);
    expect(headers).toEqual([
      { accept: "text/event-stream", authorization: "Bearer secret-key-123", "content-type": "application/json" },
    ]);
  });

  test("the body of a request has the fields of openai-responses", async () => {
    const { bodies, urls } = await sent("openai-responses", full);
    const imageParts = [
      { type: "input_text", text: "Image file at path /a.png" },
      { type: "input_image", image_url: url, detail: "auto" },
    ];
    expect(bodies).toEqual([
      {
        model: "m-1",
        instructions: "Be brief.",
        input: [
          { role: "user", content: [{ type: "input_text", text: "What is this?" }, ...imageParts] },
          { role: "assistant", content: "I look." },
          { type: "function_call", call_id: "t1", name: "view", arguments: '{"z":1,"a":"b"}' },
          { type: "function_call", call_id: "t2", name: "list", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "t1",
            output: [{ type: "input_text", text: "Viewed." }, ...imageParts],
          },
          { type: "function_call_output", call_id: "t2", output: "No such folder" },
          { role: "user", content: "Go on" },
        ],
        tools: [
          { type: "function", name: "view", description: "Shows a file", parameters, strict: false },
          { type: "function", name: "list", description: "Lists", parameters: noParameters, strict: false },
        ],
        stream: true,
        store: false,
        include: ["reasoning.encrypted_content"],
        reasoning: { effort: "high", summary: "auto" },
        max_output_tokens: 500,
        prompt_cache_key: "session-1",
      },
    ]);
    expect(urls).toEqual(["http://127.0.0.1:9/responses"]);
  });

  test("the body of a request has the fields of anthropic", async () => {
    const { bodies, urls, headers } = await sent("anthropic", full);
    const cache_control = { type: "ephemeral" };
    const imageBlocks = [
      { type: "text", text: "Image file at path /a.png" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "aW1n" } },
    ];
    expect(bodies).toEqual([
      {
        model: "m-1",
        max_tokens: 500,
        thinking: { type: "adaptive" },
        output_config: { effort: "high" },
        system: [{ type: "text", text: "Be brief.", cache_control }],
        tools: [
          { name: "view", description: "Shows a file", input_schema: parameters },
          { name: "list", description: "Lists", input_schema: noParameters, cache_control },
        ],
        messages: [
          {
            role: "user",
            content: [{ type: "text", text: "What is this?" }, imageBlocks[0], { ...imageBlocks[1], cache_control }],
          },
          {
            role: "assistant",
            content: [
              { type: "text", text: "I look." },
              { type: "tool_use", id: "t1", name: "view", input: { z: 1, a: "b" } },
              { type: "tool_use", id: "t2", name: "list", input: {} },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "Viewed." }, ...imageBlocks] },
              { type: "tool_result", tool_use_id: "t2", content: "No such folder", is_error: true },
              { type: "text", text: "Go on", cache_control },
            ],
          },
        ],
        stream: true,
      },
    ]);
    expect(urls).toEqual(["http://127.0.0.1:9/v1/messages"]);
    expect(headers[0]).toMatchObject({ "anthropic-version": "2023-06-01" });
  });

  test("the body of a request for a whole reply has no stream field", async () => {
    const asked = { ...request, stream: false };
    expect((await sent("openai-chat", asked)).bodies).toEqual([
      {
        model: "m-1",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hello" },
        ],
      },
    ]);
    expect((await sent("openai-responses", asked)).bodies[0]).not.toHaveProperty("stream");
    expect((await sent("anthropic", asked)).bodies[0]).toMatchObject({ max_tokens: 32_000 });
  });
});

describe.each(recordings)("a conversation over $wire", ({ wire, whole, events }) => {
  const end = events.at(-1);
  const reply: AssistantMessage = {
    role: "assistant",
    content: events.flatMap((event) => (event.type === "text" ? [event.delta] : [])).join(""),
    calls: events.flatMap((event) => (event.type === "call" ? [event.call] : [])),
    ...(end?.type === "end" && end.reasoning && { reasoning: end.reasoning }),
  };
  const results: readonly Message[] = [
    { role: "tool", toolCallId: "call_a", content: "A", isError: false },
    { role: "tool", toolCallId: "call_b", content: "", isError: false },
  ];

  test("a conversation returns the reasoning of its wire unchanged and in its place", async () => {
    const { bodies } = await sent(wire, { ...request, messages: [...request.messages, reply, ...results] });
    expect(JSON.stringify(bodies[0])).toContain(JSON.stringify(replayed(wire, whole)).slice(1, -1));
  });

  test("a conversation sends no reasoning of another wire", async () => {
    const foreign = {
      ...reply,
      reasoning: { text: "thought", opaque: '[{"type":"thinking"}]', wireField: "elsewhere" },
    };
    const { texts } = await sent(wire, { ...request, messages: [...request.messages, foreign, ...results] });
    expect(texts[0]).not.toMatch(/thought|thinking|elsewhere|opaque|"reasoning"/);
  });

  test("a conversation sends no sealed reasoning of another provider on the same wire", async () => {
    const { opaque = "" } = reply.reasoning ?? {};
    const reasoning = { ...reply.reasoning, opaque: opaque.replace('"from":"test"', '"from":"elsewhere"') };
    const list = [...request.messages, { ...reply, reasoning }, ...results];
    const { texts } = await sent(wire, { ...request, messages: list });
    expect(texts[0]).toContain(reply.content);
    if (wire !== "openai-chat") expect(texts[0]).not.toMatch(/c2VhbGVk|c2lnbmVk|cmVkYWN0ZWQ|elsewhere/);
  });

  test("a conversation sends the reasoning of logs that do not name its origin", async () => {
    const { opaque = "" } = reply.reasoning ?? {};
    const reasoning = { ...reply.reasoning, opaque: opaque.replace('{"from":"test"},', "") };
    const list = (message: AssistantMessage): Message[] => [...request.messages, message, ...results];
    const asked = [reply, { ...reply, reasoning }].map((message) => ({ ...request, messages: list(message) }));
    const { texts } = await sent(wire, ...asked);
    expect(texts[1]).toBe(texts[0]);
  });

  test("a conversation repeats earlier requests byte for byte, so that a prompt cache hits", async () => {
    const first = [...request.messages, reply, ...results];
    const then = [...first, { role: "user", content: "More" } as const];
    const { texts } = await sent(wire, ...[first, then, first].map((list) => ({ ...request, messages: list })));
    const unmarked = texts.map((text) => text.replaceAll(',"cache_control":{"type":"ephemeral"}', ""));
    expect(texts[2]).toBe(texts[0]);
    expect(unmarked[1]?.slice(0, unmarked[0]?.indexOf('"A"'))).toBe(unmarked[0]?.slice(0, unmarked[0]?.indexOf('"A"')));
    expect(texts[1]?.match(/cache_control/g)?.length ?? 0).toBeLessThanOrEqual(4);
  });

  test("a conversation encodes each message once", async () => {
    let reads = 0;
    const counted = {
      role: "user",
      get content() {
        reads++;
        return "Hello";
      },
    } as const;
    const asked = { ...request, messages: [counted] };
    await sent(wire, asked);
    const once = reads;
    await sent(wire, asked, asked, asked);
    expect(reads).toBe(2 * once);
  });

  test("a conversation sends no half of a surrogate pair", async () => {
    const { bodies } = await sent(wire, { ...request, messages: [{ role: "user", content: "a\ud83d \\ud83d 👋" }] });
    expect(JSON.stringify(bodies[0])).toContain(JSON.stringify("a\ufffd \\ud83d 👋").slice(1, -1));
  });
});

/** The part of the next request that answers for the reply. */
function replayed(wire: string, whole: object): object[] {
  const { choices, output, content } = whole as Record<string, Record<string, object>[]>;
  if (wire === "anthropic") return content ?? [];
  if (wire === "openai-chat") return [choices?.[0]?.message ?? {}];
  return [output?.[0] ?? {}, { role: "assistant", content: "Grüße 👋 世界" }];
}

test("thinking is requested in the format that the model supports", async () => {
  const asked = async (model: string, more: Partial<ModelRequest> = {}): Promise<unknown> => {
    const { bodies } = await sent("anthropic", { ...request, model, reasoningEffort: "medium", ...more });
    const { max_tokens, thinking, output_config } = bodies[0] as Record<string, unknown>;
    return { max_tokens, thinking, output_config };
  };
  const budget = { max_tokens: 32_000, thinking: { type: "enabled", budget_tokens: 10_000 } };
  const adaptive = { max_tokens: 32_000, thinking: { type: "adaptive" }, output_config: { effort: "medium" } };
  expect(await asked("claude-sonnet-4-5-20250929")).toEqual(budget);
  expect(await asked("claude-opus-4.1")).toEqual(budget);
  expect(await asked("claude-opus-4-6")).toEqual(adaptive);
  expect(await asked("claude-opus-5")).toEqual(adaptive);
  expect(await asked("claude-3-5-haiku-latest")).toEqual({ max_tokens: 8192 });
  expect(await asked("claude-sonnet-4-5", { maxOutputTokens: 1500 })).toEqual({ max_tokens: 1500 });
});

test("empty text is never sent to anthropic, and ids get the characters it allows", async () => {
  const { bodies } = await sent("anthropic", {
    ...request,
    system: "",
    messages: [
      { role: "user", content: " " },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "\n", calls: [{ toolCallId: "a.b|c", name: "x", arguments: {} }] },
      { role: "tool", toolCallId: "a.b|c", content: "", isError: false },
    ],
  });
  expect(bodies[0]).toEqual({
    model: "m-1",
    max_tokens: 32_000,
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] },
      { role: "assistant", content: [{ type: "tool_use", id: "a_b_c", name: "x", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a_b_c", cache_control: { type: "ephemeral" } }] },
    ],
    stream: true,
  });
});

test("parameters that an endpoint does not accept are left out", async () => {
  const chat = recorder(() => new Response("{}"));
  await collect(openaiChat({ ...chat.place, streamUsage: false }));
  expect(chat.bodies[0]).not.toHaveProperty("stream_options");
  const baseUrl = "https://api.openai.com/v1/";
  await collect(openaiChat({ ...chat.place, baseUrl, ...dialectAt(baseUrl), query: "v=1" }), full);
  expect(chat.bodies[1]).toMatchObject({ max_completion_tokens: 500, prompt_cache_key: "session-1" });
  expect(chat.urls[1]).toBe("https://api.openai.com/v1/chat/completions?v=1");
  await collect(anthropicMessages({ ...chat.place, baseUrl: "http://127.0.0.1:9/v1" }, { promptCache: false }), full);
  expect(chat.urls[2]).toBe("http://127.0.0.1:9/v1/messages");
  expect(chat.texts[2]).not.toContain("cache_control");
  await collect(openaiResponses(chat.place, { reasoningSummary: false }), { ...full, reasoningEffort: "max" });
  expect(chat.bodies[3]).toMatchObject({ reasoning: { effort: "xhigh" } });
});
