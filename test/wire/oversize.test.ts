import { expect, test } from "vitest";
import type { ModelEnd, Provider } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { processorTime } from "../support/work.ts";
import { collect, namedSse, placeWith, request, sse, streamOf } from "./support.ts";

const MiB = 1024 * 1024;
const piece = new Uint8Array(64 * 1024).fill(120);
const encoder = new TextEncoder();

interface Measured {
  readonly end: ModelEnd | undefined;
  readonly took: number;
  readonly growth: number;
  readonly events: number;
}

/** Reads to the end without keeping anything, and watches processor time and memory. */
async function measured(
  provider: (endpoint: Endpoint) => Provider,
  pieces: Iterable<string | Uint8Array>,
): Promise<Measured> {
  let peak = 0;
  function* watched(): Generator<string | Uint8Array> {
    for (const one of pieces) {
      peak = Math.max(peak, process.memoryUsage.rss());
      yield one;
    }
  }
  const endpoint: Endpoint = placeWith(() => new Response(streamOf(watched())));
  await collect(provider(placeWith(() => new Response(streamOf([sse({ choices: [] })])))));
  const before = process.memoryUsage.rss();
  const spent = processorTime();
  let end: ModelEnd | undefined;
  let events = 0;
  for await (const event of provider(endpoint).stream(request, new AbortController().signal)) {
    events++;
    if (event.type === "end") end = event;
  }
  const took = spent();
  peak = Math.max(peak, process.memoryUsage.rss());
  return { end, took, growth: (peak - before) / MiB, events };
}

function report(name: string, { took, growth, events, end }: Measured): void {
  console.log(
    `${name}: ${took.toFixed(0)} ms, RSS +${growth.toFixed(1)} MiB, ${events} events, ${end?.error?.message ?? end?.stop}`,
  );
}

function* repeated(count: number, one: string | Uint8Array, before = "", after = ""): Generator<string | Uint8Array> {
  if (before) yield before;
  for (let made = 0; made < count; made++) yield one;
  if (after) yield after;
}

/** Many small events in writes of a realistic size. */
function* batched(events: Iterable<string>): Generator<Uint8Array> {
  let text = "";
  for (const event of events) {
    text += event;
    if (text.length < 16 * 1024) continue;
    yield encoder.encode(text);
    text = "";
  }
  yield encoder.encode(text);
}

function* numbered(count: number, make: (index: number) => string, last = ""): Generator<string> {
  for (let index = 0; index < count; index++) yield make(index);
  yield last;
}

const deep = '{"a":['.repeat(500_000);
const call = (index: number): string =>
  sse({ choices: [{ delta: { tool_calls: [{ index, id: `c${index}`, function: { name: "x", arguments: "{}" } }] } }] });
const useBlock = (index: number): string =>
  namedSse({
    type: "content_block_start",
    ...{ index, content_block: { type: "tool_use", id: `c${index}`, name: "x" } },
  });
const item = (output_index: number): string =>
  namedSse({
    type: "response.output_item.added",
    ...{ output_index, item: { type: "function_call", call_id: "c", name: "x" } },
  });

test.each([
  ["a line of 64 MiB", openaiChat, () => repeated(1024, piece, "data: "), /larger than 16 MiB/],
  ["a line of 64 MiB in one piece", openaiChat, () => [lump], /larger than 16 MiB/],
  ["an event of 64 MiB in many lines", openaiChat, () => repeated(1024, line), /larger than 16 MiB/],
  ["a whole reply of 64 MiB", openaiChat, () => repeated(1024, piece, '{"choices":"'), /larger than 16 MiB/],
  ["JSON a million levels deep", openaiResponses, () => [`data: ${deep}\n\n`], /512 levels/],
  ["a whole reply a million levels deep", anthropicMessages, () => [deep], /512 levels/],
  ["100,000 calls", openaiChat, () => batched(numbered(100_000, call)), /more than 1000 tool calls/],
  ["100,000 calls", anthropicMessages, () => batched(numbered(100_000, useBlock)), /more than 1000 tool calls/],
  ["100,000 calls", openaiResponses, () => batched(numbered(100_000, item)), /more than 1000 tool calls/],
  [
    "arguments of 64 MiB",
    openaiChat,
    () => batched(numbered(4096, () => longArgument)),
    /arguments of the call "x" are too long/,
  ],
] as const)("%s is refused within a second of work and 64 MiB", async (name, provider, pieces, message) => {
  const result = await measured(provider, pieces());
  report(name, result);
  expect(result.end).toMatchObject({ stop: "error", error: { kind: "protocol" } });
  expect(result.end?.error?.message).toMatch(message);
  expect(result.took).toBeLessThan(1_000);
  expect(result.growth).toBeLessThan(64);
});

const lump = new Uint8Array(64 * MiB).fill(120);
lump.set(encoder.encode("data: "));
const line = `data: ${"x".repeat(64 * 1024)}\n`;
const longArgument = sse({
  choices: [
    { delta: { tool_calls: [{ index: 0, id: "c", function: { name: "x", arguments: "x".repeat(16 * 1024) } }] } },
  ],
});

test("a million events are read in bounded memory", async () => {
  const count = process.env.TROUPE_SLOW ? 1_000_000 : 200_000;
  const last = sse({ choices: [{ delta: {}, finish_reason: "stop" }] });
  const delta = sse({ choices: [{ index: 0, delta: { content: "word " } }] });
  const result = await measured(openaiChat, batched(numbered(count, () => delta, last)));
  report(`${count} events`, result);
  expect(result.end).toEqual({ type: "end", stop: "done" });
  expect(result.growth).toBeLessThan(64);
});

test.runIf(process.env.TROUPE_SLOW)("more than two million events, or 256 MiB, are refused", async () => {
  const events = await measured(openaiChat, batched(numbered(2_100_000, () => "data: {}\n\n")));
  report("2,100,000 events", events);
  expect(events.end?.error).toMatchObject({
    kind: "protocol",
    message: "test: the reply has more than 2000000 events",
  });
  const comment = encoder.encode(`: ${"x".repeat(64 * 1024)}\n\ndata: {}\n\n`);
  const bytes = await measured(openaiChat, repeated(5_000, comment));
  report("312 MiB", bytes);
  expect(bytes.end?.error).toMatchObject({ kind: "protocol", message: "test: the reply is larger than 256 MiB" });
});
