import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { ModelEvent } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Bounds, Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { boundsFor } from "../../src/model/wire/transport/http-request.ts";
import { HANG_MS } from "../support/work.ts";
import { recordings } from "./recordings.ts";
import { collect, endOf, namedSse, placeWith, request, sse, streamOf } from "./support.ts";

const bounds: Bounds = { connectMs: 300, idleMs: 300, totalMs: 5_000 };

async function timed<T>(work: Promise<T>): Promise<{ result: T; took: number }> {
  const start = performance.now();
  const result = await work;
  return { result, took: performance.now() - start };
}

function stalling(pieces: Iterable<string | Uint8Array>, more?: Partial<Bounds>): Endpoint {
  return placeWith(() => new Response(streamOf(pieces, "stall")), { bounds: { ...bounds, ...more } });
}

/** Names the idle bound, not the total one. */
const IDLE = /(for|within) 0\.3 s$/;
const timeout = { type: "end", stop: "error", error: { kind: "timeout", provider: "test" } };

describe.each(recordings)("$wire", ({ provider, stream }) => {
  const events = stream
    .split("\n\n")
    .slice(0, -1)
    .map((event) => `${event}\n\n`);
  const finish = events.findIndex((event) => /finish_reason":"|response\.completed|message_stop/.test(event));

  test("a stall at any event before the end of a reply is ended by the idle bound", async () => {
    const stalls = await Promise.all(
      Array.from({ length: finish + 1 }, (_, count) => timed(endOf(provider(stalling(events.slice(0, count)))))),
    );
    for (const { result, took } of stalls) {
      expect(result).toMatchObject(timeout);
      expect(result.error?.message).toMatch(IDLE);
      expect(took).toBeGreaterThan(290);
    }
  });

  test("a stall inside an event of a reply is ended as a timeout", async () => {
    const { result } = await timed(endOf(provider(stalling([stream.slice(0, stream.length / 2)]))));
    expect(result).toMatchObject(timeout);
  });
});

test("a server that never answers is ended by the connect bound, even if fetch takes no notice", async () => {
  const silent = placeWith(() => new Promise<Response>(() => {}), { bounds });
  const { result, took } = await timed(endOf(openaiChat(silent)));
  expect(result).toMatchObject(timeout);
  expect(result.error?.message).toBe("test: no answer from http://127.0.0.1:9 within 0.3 s");
  expect(took).toBeLessThan(HANG_MS);
});

test("a sign-in that never answers is ended as a timeout", async () => {
  const endpoint = placeWith(() => new Response(""), { bounds, headers: () => new Promise(() => {}) });
  expect(await endOf(openaiChat(endpoint))).toMatchObject(timeout);
});

async function* drip(piece: string, everyMs: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < 500; sent++) {
    yield new TextEncoder().encode(piece);
    await sleep(everyMs);
  }
}

function dripping(piece: string, more?: Partial<Bounds>): Endpoint {
  return placeWith(() => new Response(ReadableStream.from(drip(piece, 20)) as ReadableStream<Uint8Array>), {
    bounds: { ...bounds, ...more },
  });
}

test.each([
  ["comments", ": ping\n\n", openaiChat],
  ["blank lines", "\n", openaiChat],
  ["single bytes", "d", openaiChat],
  ["pings", namedSse({ type: "ping" }), anthropicMessages],
] as const)("a reply of %s alone is ended by the idle bound", async (_name, piece, provider) => {
  const result = await endOf(provider(dripping(piece)));
  expect(result).toMatchObject(timeout);
  expect(result.error?.message).toMatch(IDLE);
});

test("events restart the idle bound, but not the total bound", async () => {
  const { result, took } = await timed(
    collect(openaiChat(dripping(sse({ choices: [{ delta: { content: "." } }] }), { idleMs: 3_000, totalMs: 4_000 }))),
  );
  expect(result.at(-1)).toMatchObject({ ...timeout, error: { message: "test: the call took longer than 4 s" } });
  expect(took).toBeGreaterThan(3_990);
});

test("a source that floods without a pause cannot outrun the total bound", async () => {
  const flood = function* (): Generator<string> {
    while (true) yield ":";
  };
  const endpoint = placeWith(() => new Response(streamOf(flood())), { bounds: { idleMs: 300, totalMs: 300 } });
  const { result, took } = await timed(endOf(openaiChat(endpoint)));
  expect(result).toMatchObject(timeout);
  expect(took).toBeLessThan(HANG_MS);
});

test("a finished reply whose stream stays open is not waited for longer than the idle bound", async () => {
  const finished = sse({ choices: [{ delta: { content: "Yes" }, finish_reason: "stop" }] });
  expect(await endOf(openaiChat(stalling([finished])))).toEqual({ type: "end", stop: "done" });
  const long = { idleMs: 2 * HANG_MS, totalMs: 2 * HANG_MS };
  const { took } = await timed(endOf(openaiChat(stalling([finished, "data: [DONE]\n\n"], long))));
  expect(took).toBeLessThan(HANG_MS);
});

test("a silent server has 5 minutes for a whole reply and 2 for a stream, unless configured otherwise", () => {
  const limits = (stream: boolean, given?: Partial<Bounds>): Bounds =>
    boundsFor({ stream, endpoint: placeWith(() => new Response(""), given && { bounds: given }) });
  expect(limits(true)).toEqual({ connectMs: 120_000, idleMs: 120_000, totalMs: 900_000 });
  expect(limits(false)).toEqual({ connectMs: 300_000, idleMs: 300_000, totalMs: 900_000 });
  expect(limits(false, { idleMs: 700_000 })).toEqual({ connectMs: 700_000, idleMs: 700_000, totalMs: 900_000 });
  expect(limits(false, { totalMs: 60_000 })).toEqual({ connectMs: 60_000, idleMs: 60_000, totalMs: 60_000 });
});

test("blanks do not restart the idle bound of a whole reply, but its bytes do", async () => {
  const asked = { ...request, stream: false };
  const blank = await endOf(openaiChat(dripping("\n")), asked);
  expect(blank).toMatchObject(timeout);
  expect(blank.error?.message).toMatch(IDLE);
  const text = await endOf(openaiChat(dripping("{", { idleMs: 2_000, totalMs: 2_500 })), asked);
  expect(text).toMatchObject({ error: { message: "test: the call took longer than 2.5 s" } });
});

test("a whole reply may be silent for longer than a stream, unless configured otherwise", async () => {
  const slow = (more: Partial<Bounds>): Endpoint =>
    placeWith(() => sleep(400).then(() => Response.json({ choices: [{ message: { content: "Yes" } }] })), {
      bounds: more,
    });
  const asked = { ...request, stream: false };
  expect(await endOf(openaiChat(slow({ totalMs: HANG_MS })), asked)).toEqual({ type: "end", stop: "done" });
  expect(await endOf(openaiChat(slow({ totalMs: 200 })), asked)).toMatchObject(timeout);
  expect(await endOf(openaiChat(slow({ connectMs: 200 })), asked)).toMatchObject(timeout);
});

describe("an abort", () => {
  test.each([
    ["before the call", 0, streamOf([], "stall")],
    ["in the middle of a stream", 50, streamOf([recordings[0]?.stream.slice(0, 600) ?? ""], "stall")],
  ])("an abort of a reply %s ends it as aborted at once", async (_name, afterMs, body) => {
    const controller = new AbortController();
    if (afterMs === 0) controller.abort();
    else setTimeout(() => controller.abort(), afterMs);
    const { result, took } = await timed(
      collect(openaiChat(placeWith(() => new Response(body))), request, controller.signal),
    );
    expect(result.at(-1)).toEqual({ type: "end", stop: "aborted" });
    expect(took).toBeLessThan(HANG_MS);
  });
});

test("an abort closes the connection, and a finished call leaves its connection to the next one", async () => {
  const ports: (number | undefined)[] = [];
  let closed = 0;
  const server = createServer((incoming, response) => {
    ports.push(incoming.socket.remotePort);
    response.on("close", () => {
      if (!response.writableFinished) closed++;
    });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(recordings[0]?.stream ?? "");
    incoming
      .resume()
      .on("end", () => incoming.url === "/short/chat/completions" && setTimeout(() => response.end(), 5));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const place = (path: string): Endpoint => ({ id: "local", baseUrl: `${origin}${path}`, headers: async () => ({}) });

  const short = openaiChat(place("/short"));
  const again = async (): Promise<boolean> => {
    expect((await collect(short)).at(-1)).toMatchObject({ stop: "tools" });
    return ports.length > 1 && ports.at(-1) === ports.at(-2);
  };
  // The rest of a reply is read after its call has ended. A busy machine may be late with it, so it gets several tries.
  await expect.poll(again).toBe(true);

  const seen: ModelEvent[] = [];
  for await (const event of openaiChat(place("/long")).stream(request, new AbortController().signal)) {
    seen.push(event);
    break;
  }
  await expect.poll(() => closed).toBe(1);
  expect(seen.length).toBe(1);
  server.closeAllConnections();
  server.close();
});
