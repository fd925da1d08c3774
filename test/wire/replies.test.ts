import { describe, expect, test } from "vitest";
import type { Provider } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { recordings } from "./recordings.ts";
import {
  collect,
  endOf,
  errorOf,
  joined,
  namedSse,
  placeSaying,
  placeWith,
  request,
  sse,
  streamOf,
} from "./support.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Every byte takes a while; a stride that is no multiple of anything still meets all kinds of places. */
const stride = process.env.TROUPE_SLOW ? 1 : 7;

describe.each(recordings)("$wire", ({ provider, stream, whole, events }) => {
  test("a streamed reply becomes its recorded events", async () => {
    expect(joined(await collect(provider(placeSaying([stream]))))).toEqual(events);
  });

  test("a whole reply becomes the same events as a stream", async () => {
    const asked = { ...request, stream: false };
    expect(joined(await collect(provider(placeSaying([JSON.stringify(whole)])), asked))).toEqual(events);
  });

  test("a whole reply is understood where a stream was requested, and the reverse", async () => {
    expect(joined(await collect(provider(placeSaying([JSON.stringify(whole)]))))).toEqual(events);
    expect(joined(await collect(provider(placeSaying([stream])), { ...request, stream: false }))).toEqual(events);
  });

  test("a stream split at any byte gives the same events", async () => {
    const bytes = encode(stream);
    const expected = JSON.stringify(events);
    for (let at = 1; at < bytes.length; at += stride) {
      const split = placeSaying([bytes.subarray(0, at), bytes.subarray(at)]);
      const actual = joined(await collect(provider(split)));
      if (JSON.stringify(actual) !== expected) expect(actual, `split at ${at}`).toEqual(events);
    }
    const single = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect(joined(await collect(provider(placeSaying(single))))).toEqual(events);
  });

  test.each([
    ["carriage returns", (text: string) => text.replaceAll("\n", "\r")],
    ["both", (text: string) => text.replaceAll("\n", "\r\n")],
    ["a byte order mark", (text: string) => `\ufeff${text}`],
    ["comments", (text: string) => `: hello\n\n${text.replaceAll("\n\n", "\n\n: ping\n\n")}`],
  ])("a stream whose lines end with %s gives the same events", async (_name, change) => {
    const bytes = encode(change(stream));
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) => bytes.subarray(at * 7, at * 7 + 7));
    expect(joined(await collect(provider(placeSaying(pieces))))).toEqual(events);
  });

  test("a stream cut at any byte gives the whole reply or an error that it broke off", async () => {
    const bytes = encode(stream);
    const complete = { ...events.at(-1), usage: undefined };
    for (let at = 0; at < bytes.length; at += stride) {
      const end = await endOf(provider(placeSaying([bytes.subarray(0, at)])));
      if (end.error?.kind === "protocol") continue;
      expect({ ...end, usage: undefined }, `cut at ${at}`).toEqual(complete);
    }
    expect(await errorOf(provider(placeSaying([bytes.subarray(0, bytes.length / 2)])))).toMatchObject({
      message: "test: the reply broke off before it was finished",
    });
  });

  test("a web page instead of a reply is recognised", async () => {
    expect(await errorOf(provider(placeSaying(["<!doctype html><title>Sign in</title>"])))).toMatchObject({
      kind: "protocol",
      message: "test: a web page came back instead of a reply",
    });
  });
});

test("several choices of a chat reply are one message", async () => {
  const call = (id: string, name: string): object => ({ id, type: "function", function: { name, arguments: "{}" } });
  const choices = [
    { index: 0, finish_reason: "stop", message: { role: "assistant", content: "I look. " } },
    { index: 1, finish_reason: "tool_calls", message: { content: null, tool_calls: [call("t0", "view")] } },
    { index: 2, finish_reason: "tool_calls", message: { content: "And list.", tool_calls: [call("t1", "list")] } },
  ];
  const events = await collect(openaiChat(placeSaying([JSON.stringify({ choices })])), { ...request, stream: false });
  expect(joined(events)).toEqual([
    { type: "text", delta: "I look. " },
    { type: "call_delta", toolCallId: "t0", name: "view", delta: "{}" },
    { type: "text", delta: "And list." },
    { type: "call_delta", toolCallId: "t1", name: "list", delta: "{}" },
    { type: "call", call: { toolCallId: "t0", name: "view", arguments: {} } },
    { type: "call", call: { toolCallId: "t1", name: "list", arguments: {} } },
    { type: "end", stop: "tools" },
  ]);
});

const chatCalls = (...tool_calls: object[]): string =>
  sse({ choices: [{ delta: { tool_calls }, finish_reason: "tool_calls" }] });
const callsOf = async (stream: string, asked = request): Promise<unknown[]> =>
  (await collect(openaiChat(placeSaying([stream])), asked)).flatMap((event) =>
    event.type === "call" ? [event.call] : [],
  );

describe("ids of calls", () => {
  const twice = chatCalls(
    { index: 0, id: "x", function: { name: "a", arguments: "" } },
    { index: 1, id: "x", function: { name: "b" } },
    { index: 2, function: { name: "c", arguments: "null" } },
  );

  test("call ids are made unique, the same way each time", async () => {
    const expected = [
      { toolCallId: "x", name: "a", arguments: {} },
      { toolCallId: "x_1_1", name: "b", arguments: {} },
      { toolCallId: "call_1_2", name: "c", arguments: {} },
    ];
    expect(await callsOf(twice)).toEqual(expected);
    expect(await callsOf(twice)).toEqual(expected);
  });

  test("call ids do not repeat those of earlier replies", async () => {
    const earlier = { role: "assistant", content: "", calls: [{ toolCallId: "x", name: "a", arguments: {} }] } as const;
    const asked = { ...request, messages: [...request.messages, earlier] };
    expect(await callsOf(chatCalls({ index: 0, id: "x", function: { name: "a" } }), asked)).toEqual([
      { toolCallId: "x_2_1", name: "a", arguments: {} },
    ]);
  });

  test("calls that all have the index 0, or none, are told apart by their ids", async () => {
    const expected = [
      { toolCallId: "p", name: "a", arguments: { n: 1 } },
      { toolCallId: "q", name: "b", arguments: {} },
    ];
    const part = (index: number | undefined, id: string, name: string, text: string): object => ({
      ...(index !== undefined && { index }),
      ...{ id, function: { name, arguments: text } },
    });
    expect(await callsOf(chatCalls(part(0, "p", "a", '{"n":1}'), part(0, "q", "b", "{}")))).toEqual(expected);
    expect(
      await callsOf(
        chatCalls(part(undefined, "p", "a", '{"n":'), part(undefined, "p", "", "1}"), part(undefined, "q", "b", "{}")),
      ),
    ).toEqual(expected);
  });
});

test("arguments that are not a JSON object make a call that reports this", async () => {
  const calls = await callsOf(
    chatCalls(
      { index: 0, id: "x", function: { name: "a", arguments: '{"path": ' } },
      { index: 1, id: "y", function: { name: "a", arguments: "[1]" } },
      { index: 2, id: "z", function: { name: "a", arguments: "[".repeat(1_000_000) } },
    ),
  );
  expect(calls).toEqual([
    { toolCallId: "x", name: "a", arguments: {}, argumentsError: expect.stringContaining("not valid JSON") },
    { toolCallId: "y", name: "a", arguments: {}, argumentsError: "The arguments must be a JSON object." },
    { toolCallId: "z", name: "a", arguments: {}, argumentsError: expect.stringContaining("512 levels") },
  ]);
});

test("a call without a name is an error of the wire", async () => {
  expect(await errorOf(openaiChat(placeSaying([chatCalls({ index: 0, id: "x" })])))).toMatchObject({
    kind: "protocol",
  });
});

test("a reply that ran out of tokens stops with length and drops the call it was in", async () => {
  const cut = sse(
    { choices: [{ delta: { tool_calls: [{ index: 0, id: "x", function: { name: "a", arguments: "{}" } }] } }] },
    { choices: [{ delta: { tool_calls: [{ index: 1, id: "y", function: { name: "b", arguments: '{"p' } }] } }] },
    { choices: [{ delta: {}, finish_reason: "length" }] },
  );
  expect((await collect(openaiChat(placeSaying([cut])))).slice(-2)).toEqual([
    { type: "call", call: { toolCallId: "x", name: "a", arguments: {} } },
    { type: "end", stop: "length" },
  ]);
  const claude = { content: [{ type: "text", text: "…" }], stop_reason: "max_tokens" };
  expect(await endOf(anthropicMessages(placeSaying([JSON.stringify(claude)])))).toEqual({
    type: "end",
    stop: "length",
  });
  const response = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, output: [] };
  expect(await endOf(openaiResponses(placeSaying([JSON.stringify(response)])))).toEqual({
    type: "end",
    stop: "length",
  });
});

const failure = async (provider: (endpoint: Endpoint) => Provider, stream: string): Promise<unknown> => {
  const { kind, code, message } = await errorOf(provider(placeSaying([stream])));
  return { kind, code, message };
};

test.each([
  [
    "chat: an error chunk",
    openaiChat,
    sse({ error: { message: "Overloaded", code: 503 } }),
    { kind: "server", code: undefined, message: "test: Overloaded" },
  ],
  [
    "chat: a quota that ran out",
    openaiChat,
    sse({ error: { message: "No more", type: "insufficient_quota", code: "insufficient_quota" } }),
    { kind: "quota", code: "insufficient_quota", message: "test: No more" },
  ],
  [
    "chat: a filter",
    openaiChat,
    sse({ choices: [{ delta: { content: "x" }, finish_reason: "content_filter" }] }),
    { kind: "content_filter", code: undefined, message: "test: the reply was stopped by a filter" },
  ],
  [
    "chat: a refusal",
    openaiChat,
    sse({ choices: [{ delta: { refusal: "I won't." }, finish_reason: "stop" }] }),
    { kind: "content_filter", code: undefined, message: "test: the model refused: I won't." },
  ],
  [
    "responses: an error event",
    openaiResponses,
    namedSse({ type: "error", ...{ code: "rate_limit_exceeded", message: "Slow down", param: null } }),
    { kind: "rate_limit", code: "rate_limit_exceeded", message: "test: Slow down" },
  ],
  [
    "responses: a failed response",
    openaiResponses,
    namedSse({ type: "response.failed", ...{ response: { error: { code: "server_error", message: "Oops" } } } }),
    { kind: "server", code: "server_error", message: "test: Oops" },
  ],
  [
    "responses: a filter",
    openaiResponses,
    namedSse({ type: "response.incomplete", ...{ response: { incomplete_details: { reason: "content_filter" } } } }),
    { kind: "content_filter", code: undefined, message: "test: the reply was stopped by a filter" },
  ],
  [
    "anthropic: overloaded",
    anthropicMessages,
    namedSse({ type: "error", ...{ error: { type: "overloaded_error", message: "Overloaded" } } }),
    { kind: "rate_limit", code: "overloaded_error", message: "test: Overloaded" },
  ],
  [
    "anthropic: a refusal",
    anthropicMessages,
    namedSse({ type: "message_delta", ...{ delta: { stop_reason: "refusal" } } }, { type: "message_stop" }),
    { kind: "content_filter", code: undefined, message: "test: the reply was stopped by a filter" },
  ],
  [
    "anthropic: a block that starts twice",
    anthropicMessages,
    namedSse(
      ...[0, 0].map((index) => ({ type: "content_block_start", ...{ index, content_block: { type: "text" } } })),
    ),
    { kind: "protocol", code: undefined, message: "test: a block of the reply was started twice" },
  ],
] as const)("the failure %s inside a reply has its own error kind", async (_name, provider, stream, expected) => {
  expect(await failure(provider, stream)).toEqual(expected);
});

test("a chat stream without a finish reason is complete when usage and the end marker came, and not before", async () => {
  const text = sse({ choices: [{ delta: { content: "Yes" } }] });
  const counted = sse({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } });
  const done = "data: [DONE]\n\n";
  expect(await endOf(openaiChat(placeSaying([text, counted, done])))).toMatchObject({ stop: "done" });
  for (const cut of [
    [text, counted],
    [text, done],
    [counted, done],
  ]) {
    expect(await endOf(openaiChat(placeSaying(cut)))).toMatchObject({ stop: "error", error: { kind: "protocol" } });
  }
});

test("a stream that breaks after its finish reason is complete", async () => {
  const finished = sse({ choices: [{ delta: { content: "Yes" }, finish_reason: "stop" }] });
  const broken = placeWith(() => new Response(streamOf([finished], "break")));
  expect(await collect(openaiChat(broken))).toEqual([
    { type: "text", delta: "Yes" },
    { type: "end", stop: "done" },
  ]);
});
