import { readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { encodeFrame } from "../../src/protocol/rpc/frame.ts";
import { ClientConnection } from "../../src/server/connection.ts";
import { shared } from "../support/second-look.ts";
import { type RawClient, rawClient } from "./raw-client.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
let port = 0;
let token = "";
let good: RawClient;

async function admitted(): Promise<RawClient> {
  const client = await rawClient(port);
  expect((await client.ask("connect", { token })).result).toMatchObject({ ok: true, protocolVersion: 3 });
  return client;
}

shared(
  async () => {
    stage = await serverStage({ transport: "tcp", logLevel: "none" });
    await stage.client.start();
    port = Reflect.get(stage.client, "runtimePort");
    token = Reflect.get(stage.client, "effectiveConnectionToken");
    good = await admitted();
  },
  async () => {
    good.socket.destroy();
    await stage[Symbol.asyncDispose]();
  },
);

const memory = (): number => {
  const { pid } = Reflect.get(stage.client, "cliProcess");
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
};
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const frame = (body: string): string => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const request = (id: number, params: string): string =>
  frame(`{"jsonrpc":"2.0","id":${id},"method":"ping","params":${params}}`);

describe("messages of an unauthenticated client", () => {
  it.each([
    ["a browser", `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.example\r\n\r\n${request(1, "{}")}`],
    ["noise", "\u0000\u0001\u0002 nonsense\n"],
    ["a frame without an end", "Content-Length: 999999999999\r\n\r\n"],
    ["a header without an end", `X-A: ${"a".repeat(5000)}`],
  ])("an unauthenticated message closes the connection without a reply: %s", async (_, bytes) => {
    const stranger = await rawClient(port);
    stranger.write(bytes);
    await stranger.closed;
    expect(stranger.heard).toEqual([]);
    expect((await good.ask("ping", { message: "a" })).result).toMatchObject({ message: "pong: a" });
  });

  it("an unauthenticated client can send only a greeting", async () => {
    const stranger = await rawClient(port);
    const failed = { code: -32000, message: expect.stringContaining("AUTHENTICATION_FAILED") };
    expect(await stranger.ask("session.list")).toMatchObject({ error: failed });
    expect(await stranger.ask("connect", { token: "wrong" })).toMatchObject({ error: failed });
    expect(await stranger.ask("connect")).toMatchObject({ error: failed });
    expect(await stranger.ask("session.create", {})).toMatchObject({ error: failed });
    stranger.socket.destroy();
  });
});

describe("mistakes of a client", () => {
  it("each mistake of a client gets its own error, and the connection stays open", async () => {
    const client = await admitted();
    client.write(frame("{ no json"));
    expect((await client.answer(null)).error).toMatchObject({ code: -32700 });
    client.send([{ jsonrpc: "2.0", id: 1, method: "ping" }]);
    expect((await client.answer(null)).error).toMatchObject({
      code: -32600,
      message: expect.stringContaining("Batches"),
    });
    client.send({ jsonrpc: "2.0", id: {}, method: "ping" });
    expect((await client.answer(null)).error).toMatchObject({ code: -32600 });
    client.write(request(7, nested(70)));
    expect((await client.answer(7)).error).toMatchObject({ code: -32600, message: expect.stringContaining("complex") });
    client.write(request(8, `[${"1,".repeat(400_000)}1]`));
    expect((await client.answer(8)).error).toMatchObject({ code: -32600 });
    client.write(request(9, '{"message":"x","__proto__":{"polluted":true}}'));
    expect((await client.answer(9)).error).toMatchObject({
      code: -32600,
      message: expect.stringContaining("__proto__"),
    });
    client.write(request(10, '{"message":"x","\\u005f_proto__":{}}'));
    expect((await client.answer(10)).error).toMatchObject({ code: -32600 });
    expect((await client.ask("no.such.method")).error).toMatchObject({
      code: -32601,
      message: "Unhandled method no.such.method",
    });
    expect((await client.ask("toString")).error).toMatchObject({ code: -32601 });
    expect((await client.ask("ping", { message: 5 })).error).toMatchObject({
      code: -32602,
      message: expect.stringContaining("Invalid params for ping: message"),
    });
    expect((await client.ask("session.send", { sessionId: "none", prompt: "x" })).error).toMatchObject({
      code: -32603,
      message: "Request session.send failed with message: Session not found: none",
      data: { kind: "usage" },
    });
    expect((await client.ask("session.create", { sessionId: "../../etc" })).error).toMatchObject({ code: -32603 });
    expect((await client.ask("ping")).result).toMatchObject({ protocolVersion: 3 });
    client.socket.destroy();
  });

  it("a message that is too long is skipped in bounded memory", async () => {
    const client = await admitted();
    const before = memory();
    const filler = Buffer.alloc(1024 * 1024, "x");
    client.write(`Content-Length: ${300 * filler.length}\r\n\r\n`);
    const head = Buffer.alloc(filler.length, "x");
    head.write('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"message":"');
    client.write(head);
    for (let part = 1; part < 300; part++) {
      if (!client.socket.write(filler)) await new Promise((drained) => client.socket.once("drain", drained));
    }
    expect((await client.answer(1)).error).toMatchObject({ message: expect.stringContaining("the limit is") });
    expect((await client.ask("ping")).result).toMatchObject({ protocolVersion: 3 });
    expect(memory() - before).toBeLessThan(120 * 1024 * 1024);
    client.socket.destroy();
  });

  it("a client's duplicate ids and excess requests are refused", async () => {
    const client = await admitted();
    const created = await client.ask("session.create", {});
    const { sessionId } = created.result as { sessionId: string };
    const cursor = (await client.ask("session.eventLog.tail", { sessionId })).result as { cursor: string };
    const read = { method: "session.eventLog.read", params: { sessionId, ...cursor, waitMs: 20_000 } };
    client.send({ jsonrpc: "2.0", id: 1, ...read });
    client.send({ jsonrpc: "2.0", id: 1, method: "ping", params: {} });
    expect((await client.answer(null)).error).toMatchObject({
      message: expect.stringContaining("already in progress"),
    });
    for (let id = 2; id <= 1001; id++) client.send({ jsonrpc: "2.0", id, ...read });
    expect((await client.answer(1001)).error).toMatchObject({ code: -32000 });
    expect((await good.ask("ping")).result).toMatchObject({ protocolVersion: 3 });
    client.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } });
    expect((await client.answer(1)).result).toMatchObject({ events: [] });
    client.socket.destroy();
  });
});

describe("a client that does not keep up", () => {
  const tell = (connection: ClientConnection, bytes: number, isRepeatedLater: boolean): void =>
    connection.tell(encodeFrame({ text: "x".repeat(bytes) }), { sessionId: "s", isRepeatedLater });

  function slow(limits: ConstructorParameters<typeof ClientConnection>[0]["limits"], withToken = false) {
    const input = new PassThrough();
    const output = new PassThrough({ highWaterMark: 16 });
    const trouble: string[] = [];
    const connection = new ClientConnection({
      id: "c1",
      input,
      output,
      ...(withToken && { token: "t" }),
      handle: async () => ({}),
      onClose: () => undefined,
      onTrouble: (message) => trouble.push(message),
      ...(limits && { limits }),
    });
    return { connection, input, output, trouble };
  }

  it("a client that does not keep up loses message deltas, and is notified once it reads again", async () => {
    const { connection, output } = slow({ slowBytes: 1000, maxUnreadBytes: 100_000 });
    tell(connection, 2000, false);
    tell(connection, 10, true);
    tell(connection, 10, true);
    tell(connection, 20, false);
    let read = "";
    output.on("data", (chunk: Buffer) => {
      read += chunk.toString();
    });
    await expect.poll(() => read).toContain("2 message deltas were dropped");
    expect(read.match(/"text"/g)).toHaveLength(2);
  });

  it("a client that is too far behind, stops half-way, or never authenticates is disconnected", async () => {
    const behind = slow({ slowBytes: 1000, maxUnreadBytes: 5000 });
    tell(behind.connection, 6000, false);
    expect(behind.connection.isClosed).toBe(true);
    expect(behind.trouble[0]).toContain("did not read");
    const halting = slow({ stallMs: 20 });
    halting.input.write("Content-Length: 10\r\n\r\n{");
    await expect.poll(() => halting.connection.isClosed).toBe(true);
    const silent = slow({ handshakeMs: 20 }, true);
    await expect.poll(() => silent.connection.isClosed).toBe(true);
    const fine = slow({ stallMs: 20 });
    fine.input.write(frame('{"jsonrpc":"2.0","id":1,"method":"ping"}'));
    await new Promise((later) => setTimeout(later, 60));
    expect(fine.connection.isClosed).toBe(false);
    fine.connection.close();
  });
});
