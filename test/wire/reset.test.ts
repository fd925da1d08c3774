/** Connections that break below a reply, over Node's own HTTP client. */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Provider } from "../../src/model/provider.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { compatible, type Recorded, serve } from "../model/server.ts";
import { collect, endOf, placeWith } from "./support.ts";

/** Answers every request, but resets the first one that comes over a kept connection. */
function resetting(when: "before the reply" | "inside the reply") {
  const used = new WeakSet<object>();
  const seen = { resets: 0 };
  const answer = (asked: Recorded, response: ServerResponse): void => {
    const { socket } = response;
    if (socket === null) return;
    const isKept = used.has(socket);
    used.add(socket);
    if (!isKept || seen.resets > 0) {
      compatible([])(asked, response);
      return;
    }
    seen.resets++;
    if (when === "before the reply") {
      socket.resetAndDestroy();
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "half" } }] })}\n\n`, () => {
      setTimeout(() => socket.resetAndDestroy(), 20);
    });
  };
  return { answer, seen };
}

/** Calls until a connection was kept, used again and reset. Returns how that call ended, and how many came before. */
async function callUntilReset(provider: Provider, seen: { readonly resets: number }) {
  for (let before = 0; before < 100; before++) {
    const end = await endOf(provider);
    if (seen.resets > 0) return { end, before };
    expect(end).toMatchObject({ stop: "done" });
    await sleep(10);
  }
  throw new Error("no connection was kept");
}

function placeAt(url: string): Endpoint {
  return { id: "test", baseUrl: `${url}/v1`, headers: async () => ({}) };
}

/** Runs `work` and returns the promise rejections that nothing handled meanwhile. */
async function unhandledDuring(work: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", note);
  try {
    await work();
    await sleep(50);
  } finally {
    process.off("unhandledRejection", note);
    for (const other of others) process.on("unhandledRejection", other);
  }
  return unhandled;
}

describe("a reply that is compressed without a request", () => {
  const encodings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };

  test.each(Object.entries(encodings))(
    "a reply that is compressed without a request is read: %s",
    async (encoding, compress) => {
      const chunk = { choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }] };
      await using server = await serve((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": encoding });
        response.end(compress(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`));
      });
      const events = await collect(openaiChat(placeAt(server.url)));
      expect(events.map(({ type }) => type)).toEqual(["text", "end"]);
      expect(events.at(-1)).toMatchObject({ stop: "done" });
    },
  );

  test("a compressed reply that is cut off is a broken reply", async () => {
    await using server = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
      response.end(gzipSync(`data: ${"x".repeat(500)}`).subarray(0, 15));
    });
    expect(await endOf(openaiChat(placeAt(server.url)))).toMatchObject({ stop: "error" });
  });
});

test("an untrusted certificate is not retried", async () => {
  const cause = Object.assign(new Error("self-signed"), { code: "SELF_SIGNED_CERT_IN_CHAIN" });
  const endpoint = placeWith(() => Promise.reject(cause));
  expect(await endOf(openaiChat(endpoint))).toMatchObject({ error: { kind: "network", retryable: false } });
});

describe("reused connections", () => {
  test("connections are shared by all providers of a process, and closed when unused", async () => {
    const sockets = new Set<Socket>();
    let opened = 0;
    await using server = await serve((asked, response) => {
      const { socket } = response;
      if (socket && !sockets.has(socket)) {
        opened++;
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
      }
      response.setHeader("keep-alive", "timeout=600");
      compatible([])(asked, response);
    });
    const connections = { keepMs: 200 };
    for (let provider = 1; provider <= 5; provider++) {
      expect(await endOf(openaiChat({ ...placeAt(server.url), connections }))).toMatchObject({ stop: "done" });
      await sleep(20);
    }
    expect(opened).toBeLessThan(5);
    await expect.poll(() => sockets.size).toBe(0);
  });
});

describe("a reset on a reused connection", () => {
  test("a reset inside a reply is one network error, without a second request or an unhandled rejection", async () => {
    const { answer, seen } = resetting("inside the reply");
    await using server = await serve(answer);
    const provider = openaiChat(placeAt(server.url));
    let calls = 0;
    const unhandled = await unhandledDuring(async () => {
      const { end, before } = await callUntilReset(provider, seen);
      expect(end).toMatchObject({ stop: "error", error: { kind: "network", code: "ECONNRESET" } });
      calls = before + 1;
    });
    expect({ unhandled, requests: server.requests.length }).toEqual({ unhandled: [], requests: calls });
    expect(await endOf(provider)).toMatchObject({ stop: "done" });
  });

  test("a reset on a reused connection before a reply is repeated once on a new connection", async () => {
    const { answer, seen } = resetting("before the reply");
    await using server = await serve(answer);
    const { end, before } = await callUntilReset(openaiChat(placeAt(server.url)), seen);
    expect(end).toMatchObject({ stop: "done" });
    expect(server.requests).toHaveLength(before + 2);
  });
});
