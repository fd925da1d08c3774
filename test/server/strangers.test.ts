import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { shared } from "../support/second-look.ts";
import { HANG_MS } from "../support/work.ts";
import { type RawClient, rawClient } from "./raw-client.ts";
import { joining, type ServerStage, serverStage } from "./stage.ts";

const MIB = 1024 * 1024;
let stage: ServerStage;
let port = 0;
let token = "";

shared(
  async () => {
    stage = await serverStage({ transport: "tcp", logLevel: "none" });
    await stage.client.start();
    port = Reflect.get(stage.client, "runtimePort");
    token = Reflect.get(stage.client, "effectiveConnectionToken");
  },
  () => stage[Symbol.asyncDispose](),
);

async function admitted(): Promise<RawClient> {
  const client = await rawClient(port);
  onTestFinished(() => void client.socket.destroy());
  expect((await client.ask("connect", { token })).result).toMatchObject({ ok: true });
  return client;
}

/** Opens a connection that sends `bytes`, and another one whenever it is closed. */
function persistentStrangers(count: number, bytes = ""): { opened: number } {
  const state = { opened: 0, sockets: new Set<Socket>(), isOver: false };
  const open = (): void => {
    if (state.isOver) return;
    state.opened++;
    const socket = connect(port, "127.0.0.1", () => void (bytes && socket.write(bytes)));
    state.sockets.add(socket);
    socket
      .on("error", () => undefined)
      .on("close", () => {
        state.sockets.delete(socket);
        open();
      });
  };
  for (let index = 0; index < count; index++) open();
  onTestFinished(() => {
    state.isOver = true;
    for (const socket of state.sockets) socket.destroy();
  });
  return state;
}

/** The most memory that the server has had. */
const peakMemory = (): number => {
  const { pid } = Reflect.get(stage.client, "cliProcess");
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
};

describe("connections that have not shown a token", () => {
  it.each([
    ["say nothing", ""],
    ["stop in the middle of a message", "Content-Length: 4000\r\n\r\n{"],
  ])("unauthenticated connections do not keep clients out: 200 that %s and reconnect", async (_, bytes) => {
    const strangers = persistentStrangers(200, bytes);
    await expect.poll(() => strangers.opened).toBeGreaterThan(300);
    for (let round = 0; round < 5; round++) {
      const client = joining(stage.client);
      await client.start();
      expect((await client.ping("hi")).message).toBe("pong: hi");
      await client.stop();
    }
  });

  it("an unauthenticated connection is closed after 4 KiB, whatever it announced, with little memory", async () => {
    const before = peakMemory();
    const filler = Buffer.alloc(MIB, "x");
    const strangers = await Promise.all(Array.from({ length: 60 }, () => rawClient(port)));
    for (const stranger of strangers) {
      stranger.write(`Content-Length: ${31 * MIB}\r\n\r\n`);
      for (let part = 0; part < 30; part++) stranger.write(filler);
    }
    await Promise.all(strangers.map(({ closed }) => closed));
    expect(strangers.flatMap(({ heard }) => heard)).toEqual([]);
    expect(peakMemory() - before).toBeLessThan(16 * MIB);
  });

  it("an unauthenticated connection may not spread its data over many small messages either", async () => {
    const stranger = await rawClient(port);
    for (let id = 0; id < 100; id++) stranger.send({ jsonrpc: "2.0", id, method: "connect", params: { token: "no" } });
    await stranger.closed;
    expect(stranger.heard.length).toBeLessThan(70);
  });

  it("an unauthenticated connection is closed after two seconds, however many single bytes it sends", async () => {
    const stranger = await rawClient(port);
    const start = performance.now();
    stranger.write("Content-Length: 1000\r\n\r\n");
    const drip = setInterval(() => stranger.write(" "), 50);
    onTestFinished(() => clearInterval(drip));
    await stranger.closed;
    expect(performance.now() - start).toBeGreaterThan(1_500);
    expect(performance.now() - start).toBeLessThan(HANG_MS);
  });

  it("a connection may send large messages once it has sent its token, also in the same write", async () => {
    const client = await rawClient(port);
    onTestFinished(() => void client.socket.destroy());
    const message = "x".repeat(5 * MIB);
    client.send({ jsonrpc: "2.0", id: 1, method: "connect", params: { token } });
    client.send({ jsonrpc: "2.0", id: 2, method: "ping", params: { message } });
    expect((await client.answer(1)).result).toMatchObject({ ok: true });
    expect((await client.answer(2)).result).toMatchObject({ message: `pong: ${message}` });
    await new Promise((later) => setTimeout(later, 2_300));
    expect((await client.ask("ping", { message })).result).toMatchObject({ message: `pong: ${message}` });
  });
});

describe("clients", () => {
  it("at most 64 clients can connect, and the next one is refused", async () => {
    const clients: RawClient[] = [];
    for (let count = 1; count < 64; count++) clients.push(await admitted()); // the one of the stage is there already
    const late = await rawClient(port);
    expect((await late.ask("connect", { token })).error).toMatchObject({ message: expect.stringContaining("64") });
    expect((await late.ask("ping")).error).toMatchObject({ message: expect.stringContaining("AUTHENTICATION_FAILED") });
    clients[0]?.socket.destroy();
    await expect.poll(async () => (await late.ask("connect", { token })).result).toMatchObject({ ok: true });
    late.socket.destroy();
  });
});
