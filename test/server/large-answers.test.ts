/** Answers that are larger than the buffer of a connection: whoever reads gets them, whole and in order. */
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { encodeFrame, FrameReader } from "../../src/protocol/rpc/frame.ts";
import { ClientConnection } from "../../src/server/connection.ts";
import { encodeAnswer } from "../../src/server/large-answer.ts";

const limits = { slowBytes: 100_000, maxUnreadBytes: 1_000_000 };

function connect(result: unknown, more: object = {}) {
  const input = new PassThrough();
  const output = new PassThrough({ highWaterMark: 16 * 1024 });
  const trouble: string[] = [];
  const connection = new ClientConnection({
    id: "c1",
    input,
    output,
    handle: async () => result,
    onClose: () => undefined,
    onTrouble: (message) => trouble.push(message),
    limits: { ...limits, ...more },
  });
  const heard: unknown[] = [];
  const listen = (): void => {
    const reader = new FrameReader({ bytes: 512 * 1024 * 1024, depth: 64, marks: 50_000_000 });
    output.on("data", (chunk: Buffer) => {
      for (const frame of reader.read(chunk)) if (frame.kind === "message") heard.push(frame.value);
    });
  };
  const ask = (): boolean => input.write(encodeFrame({ jsonrpc: "2.0", id: 1, method: "session.getMessages" }));
  const tell = (number: number, bytes = 0): void =>
    connection.tell(encodeFrame({ number, text: "x".repeat(bytes) }), { sessionId: "s", isRepeatedLater: false });
  return { connection, trouble, heard, listen, ask, tell };
}

const events = Array.from({ length: 3_000 }, (_, number) => ({
  number,
  text: `${"ü".repeat(500)}"\n`,
  none: undefined,
}));
const plain = JSON.parse(JSON.stringify({ events }));

describe("an answer beyond the send buffer", () => {
  it.each([
    ["a long list", { events }, plain],
    ["one long text", { text: "y".repeat(3_000_000) }, { text: "y".repeat(3_000_000) }],
  ])("a large answer reaches a client that reads, before later messages: %s", async (_, result, expected) => {
    const client = connect(result);
    client.ask();
    await new Promise((later) => setImmediate(later));
    client.tell(1);
    client.tell(2);
    client.listen();
    await expect.poll(() => client.heard.length).toBe(3);
    expect(client.heard).toEqual([
      { jsonrpc: "2.0", id: 1, result: expected },
      { number: 1, text: "" },
      { number: 2, text: "" },
    ]);
    expect(client.trouble).toEqual([]);
    client.connection.close();
  });

  it("a large answer does not let a client that reads nothing fill the memory", async () => {
    const client = connect({ events });
    client.ask();
    await new Promise((later) => setImmediate(later));
    for (let number = 0; number < 30 && !client.connection.isClosed; number++) client.tell(number, 50_000);
    expect(client.connection.isClosed).toBe(true);
    expect(client.trouble[0]).toContain("did not read");
  });

  it("a large answer is given up when the client reads nothing for too long", async () => {
    const client = connect({ events }, { unreadMs: 30 });
    client.ask();
    await expect
      .poll(() => client.trouble)
      .toEqual([expect.stringContaining("it read nothing of an answer for 0.03 s")]);
  });

  it("a large answer is refused with a hint when it is larger than any message can be", async () => {
    const text = "z".repeat(1024 * 1024);
    const large = encodeAnswer({ jsonrpc: "2.0", id: 4, result: { events: Array(600).fill({ text }) } });
    if (large instanceof Uint8Array) throw new Error("it was taken for a small answer");
    const error = await large
      .pieces()
      .next()
      .catch((thrown: unknown) => thrown);
    const said = Buffer.from(large.refusal(error)).toString();
    expect(said).toContain('"id":4,"error":{"code":-32000,"message":"The answer is too large for one message.');
    expect(said).toContain("session.eventLog.read");
  });
});
