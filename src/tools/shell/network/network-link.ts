/**
 * Multiplexes many connections over one pair of pipes. In the sandbox a small program listens like a proxy and passes
 * every connection on through the pipes; outside, the proxy accepts them. No socket leads out of the sandbox. The
 * program inside runs under the same filter as the command: all it could do is send invalid frames, which ends the
 * link.
 *
 * A frame is a type (1 byte), a connection (4), a length (4) and that many bytes. Each connection has a window of
 * unacknowledged bytes. Data waits in its connection while the pipe is full. Replies cannot wait: a side that requests
 * replies and does not read them ends the link.
 *
 * The functions from `framing` on, except the exported ones, are sent as source text. They must not reference anything
 * outside themselves.
 */
import type * as net from "node:net";
import type * as stream from "node:stream";

export interface LinkOptions {
  readonly Duplex: typeof stream.Duplex;
  readonly maxConnections: number;
  send(bytes: Buffer): void;
  /** Returns the bytes that were sent and are not in the pipe yet. The caller must call `drained` when they are. */
  unsent(): number;
  /** For the accepting side. */
  onConnection?(connection: stream.Duplex): void;
  /** Called when the other side violates the protocol; nothing more is accepted from it. */
  onNonsense(): void;
}

export interface NetworkLink {
  receive(bytes: Buffer): void;
  /** Returns undefined when there are too many connections. */
  connect(): stream.Duplex | undefined;
  /** Sends the data that waited for the pipe. */
  drained(): void;
  close(): void;
}

/** Types of frames, and limits. */
const RULES = {
  open: 1,
  data: 2,
  end: 3,
  close: 4,
  credit: 5,
  header: 9,
  window: 256 * 1024,
  maxPayload: 32 * 1024,
  /** With this many unsent bytes, data waits. */
  fullBytes: 256 * 1024,
  /** Data alone never reaches this limit. */
  maxUnsent: 1024 * 1024,
};
type Rules = typeof RULES;

interface Side {
  readonly stream: stream.Duplex;
  /** Bytes that may still be sent. */
  credit: number;
  /** Bytes received and not consumed yet. */
  untaken: number;
  unsent: { bytes: Buffer; done: () => void } | undefined;
}

interface LinkState {
  readonly sides: Map<number, Side>;
  /** Connections whose data waits for the pipe, in order. */
  readonly blocked: Set<number>;
  held: Buffer;
  broken: boolean;
}

type Send = (type: number, id: number, payload?: Buffer, length?: number) => void;
type Take = (frame: { type: number; id: number; payload: Buffer; length: number }) => boolean;

/** Writes frames and splits incoming bytes into frames. */
function framing({ header, data, maxPayload, maxUnsent }: Rules, options: LinkOptions, state: LinkState) {
  const fail = (): void => {
    if (state.broken) return;
    closeAll();
    options.onNonsense();
  };
  const closeAll = (): void => {
    state.broken = true;
    for (const side of state.sides.values()) side.stream.destroy();
    state.sides.clear();
    state.blocked.clear();
    state.held = Buffer.alloc(0);
  };
  const send: Send = (type, id, payload = Buffer.alloc(0), length = payload.length) => {
    if (state.broken) return;
    if (options.unsent() > maxUnsent) return void fail();
    const head = Buffer.alloc(header);
    head.writeUInt8(type, 0);
    head.writeUInt32LE(id, 1);
    head.writeUInt32LE(length, 5);
    options.send(payload.length > 0 ? Buffer.concat([head, payload]) : head);
  };
  const receive = (bytes: Buffer, take: Take): void => {
    if (state.broken) return;
    state.held = state.held.length > 0 ? Buffer.concat([state.held, bytes]) : Buffer.from(bytes);
    while (!state.broken && state.held.length >= header) {
      const { held } = state;
      const [type, id, length] = [held.readUInt8(0), held.readUInt32LE(1), held.readUInt32LE(5)];
      const size = type === data ? length : 0;
      if (size > maxPayload) return void fail();
      if (held.length < header + size) return;
      const payload = Buffer.from(held.subarray(header, header + size));
      state.held = held.subarray(header + size);
      if (!take({ type, id, payload, length })) return void fail();
    }
  };
  return { send, receive, closeAll };
}

/** Makes a stream of each connection. */
function connecting(rules: Rules, options: LinkOptions, { state, send }: { state: LinkState; send: Send }) {
  const { sides, blocked } = state;
  const flush = (id: number, side: Side): void => {
    while (side.unsent !== undefined && side.credit > 0) {
      if (options.unsent() >= rules.fullBytes) return void blocked.add(id);
      const { bytes, done } = side.unsent;
      const piece = bytes.subarray(0, Math.min(side.credit, rules.maxPayload));
      side.credit -= piece.length;
      const rest = bytes.subarray(piece.length);
      side.unsent = rest.length > 0 ? { bytes: rest, done } : undefined;
      send(rules.data, id, piece);
      if (rest.length === 0) done();
    }
  };
  const acknowledge = (id: number, side: Side): void => {
    if (side.untaken === 0) return;
    send(rules.credit, id, undefined, side.untaken);
    side.untaken = 0;
  };
  const add = (id: number): stream.Duplex => {
    const side: Side = {
      credit: rules.window,
      untaken: 0,
      unsent: undefined,
      stream: new options.Duplex({
        read: () => acknowledge(id, side),
        write(bytes: Buffer, _encoding, done) {
          side.unsent = { bytes, done };
          flush(id, side);
        },
        final(done) {
          send(rules.end, id);
          done();
        },
        destroy(_error, done) {
          if (sides.delete(id)) send(rules.close, id);
          done(null);
        },
      }),
    };
    side.stream.on("error", () => undefined);
    sides.set(id, side);
    return side.stream;
  };
  return { flush, acknowledge, add };
}

/** Handles incoming frames. Returns false for one that violates the protocol. */
function accepting(
  rules: Rules,
  options: LinkOptions,
  parts: ReturnType<typeof connecting> & { state: LinkState; send: Send },
): Take {
  const { flush, acknowledge, add, send } = parts;
  const { sides } = parts.state;
  return ({ type, id, payload, length }) => {
    const side = sides.get(id);
    if (type === rules.open) {
      if (options.onConnection === undefined || side !== undefined) return false;
      if (sides.size >= options.maxConnections) send(rules.close, id);
      else options.onConnection(add(id));
      return true;
    }
    if (side === undefined) return true; // closed here, and the other side does not know yet
    if (type === rules.data) {
      side.untaken += payload.length;
      if (side.untaken > rules.window) return false;
      if (!side.stream.readableEnded && side.stream.push(payload)) acknowledge(id, side);
    } else if (type === rules.end) side.stream.push(null);
    else if (type === rules.credit) {
      side.credit = Math.min(rules.window, side.credit + length);
      flush(id, side);
    } else if (type === rules.close) {
      sides.delete(id);
      side.stream.destroy();
    } else return false;
    return true;
  };
}

const PARTS = { framing, connecting, accepting };

function linkOf(options: LinkOptions, rules: Rules, parts: typeof PARTS): NetworkLink {
  const state: LinkState = { sides: new Map(), blocked: new Set(), held: Buffer.alloc(0), broken: false };
  const { send, receive, closeAll } = parts.framing(rules, options, state);
  const connections = parts.connecting(rules, options, { state, send });
  const take = parts.accepting(rules, options, { ...connections, state, send });
  let last = 0;
  return {
    receive: (bytes) => receive(bytes, take),
    connect() {
      if (state.broken || state.sides.size >= options.maxConnections) return undefined;
      last++;
      const made = connections.add(last);
      send(rules.open, last);
      return made;
    },
    drained() {
      for (const id of [...state.blocked]) {
        state.blocked.delete(id);
        const side = state.sides.get(id);
        if (side !== undefined) connections.flush(id, side);
      }
    },
    close: closeAll,
  };
}

export const networkLink = (options: LinkOptions): NetworkLink => linkOf(options, RULES, PARTS);

/** Returns the source text of a program that listens on a port inside the sandbox. */
export function bridgeProgram(port: number): string {
  const parts = Object.entries(PARTS).map(([name, part]) => `${name}: ${part.toString()}`);
  const link = `(options) => (${linkOf.toString()})(options, ${JSON.stringify(RULES)}, {${parts.join(",")}})`;
  return `(${bridge.toString()})(require, ${link}, ${port})`;
}

/** The program inside: frames arrive on its input and leave on its output. It closes descriptor 3 when it listens. */
function bridge(require: NodeJS.Require, makeLink: typeof networkLink, port: number): void {
  const { createServer } = require("node:net") as typeof net;
  const { Duplex } = require("node:stream") as typeof stream;
  const link = makeLink({
    Duplex,
    maxConnections: 64,
    send: (bytes) => void process.stdout.write(bytes),
    unsent: () => process.stdout.writableLength,
    onNonsense: () => process.exit(1),
  });
  process.stdout.on("drain", () => link.drained());
  process.stdin.on("data", (bytes: Buffer) => link.receive(bytes)).on("end", () => process.exit(0));
  process.stdin.on("error", () => process.exit(0));
  process.stdout.on("error", () => process.exit(0));
  for (const signal of ["SIGINT", "SIGHUP", "SIGQUIT"] as const) process.on(signal, () => undefined);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const other = link.connect();
    if (other === undefined) return void socket.destroy();
    socket.on("error", () => other.destroy()).on("close", () => other.destroy());
    other.on("close", () => socket.destroy());
    socket.pipe(other).pipe(socket);
  });
  server.on("error", () => process.exit(1));
  server.listen(port, "127.0.0.1", () => (require("node:fs") as typeof import("node:fs")).closeSync(3));
}
