import { connect, type Socket } from "node:net";
import { isObject } from "../../src/lib/json.ts";
import { encodeFrame, FrameReader } from "../../src/protocol/rpc/frame.ts";

/** A client that can say anything at all, well-formed or not. */
export interface RawClient {
  readonly socket: Socket;
  /** Every message of the server, in order. */
  readonly heard: readonly Record<string, unknown>[];
  write(bytes: string | Uint8Array): void;
  send(message: unknown): void;
  /** The answer to a request, or to something that had this id. */
  answer(id: number | string | null): Promise<Record<string, unknown>>;
  ask(method: string, params?: object): Promise<Record<string, unknown>>;
  readonly closed: Promise<void>;
}

export async function rawClient(port: number): Promise<RawClient> {
  const socket = connect(port, "127.0.0.1");
  const heard: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  const reader = new FrameReader();
  socket.on("data", (chunk: Buffer) => {
    for (const frame of reader.read(chunk))
      if (frame.kind === "message" && isObject(frame.value)) heard.push(frame.value);
    for (const wake of waiting) wake();
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  const taken = new Set<Record<string, unknown>>();
  const answer: RawClient["answer"] = (id) =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = heard.find((one) => !taken.has(one) && one.id === id && one.method === undefined);
        if (!found) return;
        taken.add(found);
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  let next = 1000;
  const send = (message: unknown): void => void socket.write(encodeFrame(message));
  return {
    socket,
    heard,
    closed,
    send,
    answer,
    write: (bytes) => void socket.write(bytes),
    ask(method, params = {}) {
      const id = ++next;
      send({ jsonrpc: "2.0", id, method, params });
      return answer(id);
    },
  };
}
