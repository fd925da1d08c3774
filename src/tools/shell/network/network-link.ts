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
 * `networkLink` and `bridge` are sent as source text. They must not reference anything outside themselves.
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

export function networkLink(options: LinkOptions): NetworkLink {
  const [open, data, end, close, credit] = [1, 2, 3, 4, 5] as const;
  const window = 256 * 1024;
  const maxPayload = 32 * 1024;
  const header = 9;
  /** With this many unsent bytes, data waits. */
  const fullBytes = 256 * 1024;
  /** Data alone never reaches this limit. */
  const maxUnsent = 1024 * 1024;
  interface Side {
    readonly stream: stream.Duplex;
    /** Bytes that may still be sent. */
    credit: number;
    /** Bytes received and not consumed yet. */
    untaken: number;
    unsent: { bytes: Buffer; done: () => void } | undefined;
  }
  const sides = new Map<number, Side>();
  /** Connections whose data waits for the pipe, in order. */
  const blocked = new Set<number>();
  let held: Buffer = Buffer.alloc(0);
  let last = 0;
  let broken = false;

  function send(type: number, id: number, payload: Buffer, length = payload.length): void {
    if (broken) return;
    if (options.unsent() > maxUnsent) return void fail();
    const head = Buffer.alloc(header);
    head.writeUInt8(type, 0);
    head.writeUInt32LE(id, 1);
    head.writeUInt32LE(length, 5);
    options.send(payload.length > 0 ? Buffer.concat([head, payload]) : head);
  }
  const nothing = Buffer.alloc(0);

  function flush(id: number, side: Side): void {
    while (side.unsent !== undefined && side.credit > 0) {
      if (options.unsent() >= fullBytes) return void blocked.add(id);
      const { bytes, done } = side.unsent;
      const piece = bytes.subarray(0, Math.min(side.credit, maxPayload));
      side.credit -= piece.length;
      const rest = bytes.subarray(piece.length);
      side.unsent = rest.length > 0 ? { bytes: rest, done } : undefined;
      send(data, id, piece);
      if (rest.length === 0) done();
    }
  }

  function taken(id: number, side: Side): void {
    if (side.untaken === 0) return;
    send(credit, id, nothing, side.untaken);
    side.untaken = 0;
  }

  function add(id: number): stream.Duplex {
    const side: Side = {
      credit: window,
      untaken: 0,
      unsent: undefined,
      stream: new options.Duplex({
        read: () => taken(id, side),
        write(bytes: Buffer, _encoding, done) {
          side.unsent = { bytes, done };
          flush(id, side);
        },
        final(done) {
          send(end, id, nothing);
          done();
        },
        destroy(_error, done) {
          if (sides.delete(id)) send(close, id, nothing);
          done(null);
        },
      }),
    };
    side.stream.on("error", () => undefined);
    sides.set(id, side);
    return side.stream;
  }

  function take(type: number, id: number, payload: Buffer, length: number): boolean {
    const side = sides.get(id);
    if (type === open) {
      if (options.onConnection === undefined || side !== undefined) return false;
      if (sides.size >= options.maxConnections) send(close, id, nothing);
      else options.onConnection(add(id));
      return true;
    }
    if (side === undefined) return true; // closed here, and the other side does not know yet
    if (type === data) {
      side.untaken += payload.length;
      if (side.untaken > window) return false;
      if (!side.stream.readableEnded && side.stream.push(payload)) taken(id, side);
    } else if (type === end) side.stream.push(null);
    else if (type === credit) {
      side.credit = Math.min(window, side.credit + length);
      flush(id, side);
    } else if (type === close) {
      sides.delete(id);
      side.stream.destroy();
    } else return false;
    return true;
  }

  function closeAll(): void {
    broken = true;
    for (const side of sides.values()) side.stream.destroy();
    sides.clear();
    blocked.clear();
    held = nothing;
  }

  function fail(): void {
    if (broken) return;
    closeAll();
    options.onNonsense();
  }

  return {
    receive(bytes) {
      if (broken) return;
      held = held.length > 0 ? Buffer.concat([held, bytes]) : Buffer.from(bytes);
      while (!broken && held.length >= header) {
        const [type, id, length] = [held.readUInt8(0), held.readUInt32LE(1), held.readUInt32LE(5)];
        const size = type === data ? length : 0;
        if (size > maxPayload) return fail();
        if (held.length < header + size) return;
        const payload = Buffer.from(held.subarray(header, header + size));
        held = held.subarray(header + size);
        if (!take(type, id, payload, length)) return fail();
      }
    },
    connect() {
      if (broken || sides.size >= options.maxConnections) return undefined;
      last++;
      const made = add(last);
      send(open, last, nothing);
      return made;
    },
    drained() {
      for (const id of [...blocked]) {
        blocked.delete(id);
        const side = sides.get(id);
        if (side !== undefined) flush(id, side);
      }
    },
    close: closeAll,
  };
}

/** The program inside: frames arrive on its input and leave on its output. It closes descriptor 3 when it listens. */
export function bridge(require: NodeJS.Require, makeLink: typeof networkLink, port: number): void {
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
