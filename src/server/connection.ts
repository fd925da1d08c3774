/**
 * One client: an input stream and an output stream. Outgoing messages wait in the client's own buffer, so that a slow
 * client does not delay others. A slow client first loses message deltas, which whole messages repeat. A client that is
 * too far behind is disconnected; it can reconnect and read what it missed.
 */
import type { Readable, Writable } from "node:stream";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { encodeFrame, FrameReader, FramingError } from "../protocol/rpc/frame.ts";
import { type AskOptions, Peer } from "../protocol/rpc/peer.ts";
import { encodeAnswer, type LargeMessage } from "./large-answer.ts";
import { SendQueue } from "./send-queue.ts";

/** Identity of an extension, a client that the server started itself. */
export interface ExtensionIdentity {
  readonly id: string;
  readonly name: string;
  /** The only session that it may access. */
  readonly sessionId: string;
  /** The trust that it has: the user's or the project's. */
  readonly scope: "user" | "project";
  /** The methods that a user lets it answer in their place. */
  answers?: ReadonlySet<string>;
  /** The user's answer for each of its factories: the number of agents a run may have, or 0 for a refusal. */
  readonly factories: Map<string, Promise<number>>;
}

export interface ClientConnectionOptions {
  readonly id: string;
  readonly input: Readable;
  readonly output: Writable;
  /** The token that a client must present, if set. */
  readonly token?: string;
  readonly extension?: ExtensionIdentity;
  handle(connection: ClientConnection, method: string, params: unknown, signal: AbortSignal): Promise<unknown>;
  /** Called once, when the token was presented. Throws if there is no room for another client. */
  onAdmitted?(connection: ClientConnection): void;
  onClose(connection: ClientConnection): void;
  /** Reports to the user why a client was disconnected. */
  onTrouble(message: string, connection: ClientConnection): void;
  readonly limits?: Partial<ConnectionLimits>;
}

interface ConnectionLimits {
  /** Above this number of unread bytes, messages that are repeated later are dropped. */
  readonly slowBytes: number;
  /** Above this number of unread bytes, the client is disconnected. */
  readonly maxUnreadBytes: number;
  /** How long a partly received message may stall. */
  readonly stallMs: number;
  /** How long a client may leave a streamed response unread. */
  readonly unreadMs: number;
  /** How long a client may take to present a required token. */
  readonly handshakeMs: number;
  /** Total number of bytes that are read before the token is presented. */
  readonly handshakeBytes: number;
}

const limits: ConnectionLimits = {
  slowBytes: 8 * 1024 * 1024,
  maxUnreadBytes: 64 * 1024 * 1024,
  stallMs: 30_000,
  unreadMs: 300_000,
  handshakeMs: 2_000,
  handshakeBytes: 4096,
};

export class ClientConnection {
  readonly id: string;
  /** Set for an extension, which has fewer rights than a client that a user started. */
  readonly extension: ExtensionIdentity | undefined;
  readonly #options: ClientConnectionOptions;
  readonly #limits: ConnectionLimits;
  readonly #peer: Peer;
  readonly #reader = new FrameReader();
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #outgoing: SendQueue;
  #stall: NodeJS.Timeout | undefined;
  #handshakeTimer: NodeJS.Timeout | undefined;
  /** Bytes read before the token was presented. */
  #handshakeBytes = 0;
  #isClosed = false;
  /** Why the server closed the connection, if it did. */
  closedFor: string | undefined;
  /** Number of dropped messages since the client was last notified, by session. */
  readonly #dropped = new Map<string, number>();
  /** False until a required token was presented. */
  isAdmitted: boolean;
  /** Whether it asked for telemetry of every session. */
  wantsTelemetry = false;
  /** Task kinds that it supports. */
  taskKinds: ReadonlySet<string> = new Set();

  constructor(options: ClientConnectionOptions) {
    this.id = options.id;
    this.extension = options.extension;
    this.#options = options;
    this.#limits = { ...limits, ...options.limits };
    this.#input = options.input;
    this.#output = options.output;
    this.isAdmitted = options.token === undefined;
    this.#outgoing = new SendQueue({
      output: options.output,
      stallMs: this.#limits.unreadMs,
      onLost: (why) => this.close(why),
    });
    this.#peer = new Peer({
      send: (message) => this.#write("result" in message ? encodeAnswer({ ...message }) : encodeFrame(message)),
      handle: (method, params, { signal }) => options.handle(this, method, params, signal),
    });
    if (!this.isAdmitted) {
      // After this process was suspended, data that arrived in time is read first.
      this.#handshakeTimer = setTimeout(() => setImmediate(() => this.#requireHandshake()), this.#limits.handshakeMs);
    }
    this.#input.on("data", (chunk: Buffer) => this.#read(chunk));
    for (const end of ["end", "close", "error"]) this.#input.on(end, () => this.close());
    for (const end of ["close", "error"]) this.#output.on(end, () => this.close());
    this.#output.on("drain", () => this.#reportDropped());
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get token(): string | undefined {
    return this.#options.token;
  }

  /** Called when the token was presented. Throws if there is no room for another client. */
  admit(): void {
    if (this.isAdmitted) return;
    this.#options.onAdmitted?.(this);
    this.isAdmitted = true;
    clearTimeout(this.#handshakeTimer);
  }

  /** Sends a request to the client. Rejects if it fails, times out or disconnects. */
  ask(method: string, params: object, options?: AskOptions): Promise<unknown> {
    return this.#peer.ask(method, params, options);
  }

  notify(method: string, params: object): void {
    this.#peer.notify(method, params);
  }

  /** Sends an event that all clients of a session receive. It is encoded once for all of them. */
  tell(frame: Uint8Array, about: { readonly sessionId: string; readonly isRepeatedLater: boolean }): void {
    if (about.isRepeatedLater && this.#outgoing.unread > this.#limits.slowBytes) {
      this.#dropped.set(about.sessionId, (this.#dropped.get(about.sessionId) ?? 0) + 1);
      return;
    }
    this.#write(frame);
  }

  /** Sends a short-lived notification. A slow client does not receive it unless it `mustArrive`. */
  hint(frame: Uint8Array, { mustArrive }: { readonly mustArrive: boolean }): void {
    if (mustArrive || this.#outgoing.unread <= this.#limits.slowBytes) this.#write(frame);
  }

  /** Throws if the client disconnected while it waited: its `onClose` has run and will not run again. */
  requireConnected(): void {
    if (this.#isClosed) throw new RpcError(rpcCodes.refused, "The client has disconnected.");
  }

  /** Closes the connection. `why` is reported to the user; omit it if the client left by itself. */
  close(why?: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.closedFor = why;
    clearTimeout(this.#stall);
    clearTimeout(this.#handshakeTimer);
    if (why !== undefined) this.#options.onTrouble(`client ${this.id} was disconnected: ${why}`, this);
    this.#outgoing.end();
    this.#peer.close("The connection is closed.");
    this.#input.destroy();
    this.#output.end();
    if (why !== undefined) this.#output.destroy();
    this.#options.onClose(this);
  }

  #requireHandshake(): void {
    if (!this.isAdmitted) this.close("it did not send its token in time");
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return;
    try {
      this.#receive(this.isAdmitted ? chunk : this.#readGreeting(chunk));
    } catch (error) {
      if (!(error instanceof FramingError)) throw error;
      this.close(error.message);
      return;
    }
    clearTimeout(this.#stall);
    if (this.#reader.isInside && !this.#isClosed) {
      this.#stall = setTimeout(() => this.close("it stopped in the middle of a message"), this.#limits.stallMs);
    }
  }

  /**
   * Reads up to the limit for clients without a token. Returns the rest, which is read only if the token was presented.
   */
  #readGreeting(chunk: Buffer): Buffer {
    const allowed = chunk.subarray(0, this.#limits.handshakeBytes - this.#handshakeBytes);
    this.#handshakeBytes += allowed.length;
    this.#receive(allowed);
    const rest = chunk.subarray(allowed.length);
    if (this.isAdmitted || rest.length === 0) return rest;
    throw new FramingError(`it sent more than ${this.#limits.handshakeBytes} bytes without a token`);
  }

  #receive(chunk: Buffer): void {
    for (const frame of this.#reader.read(chunk)) this.#peer.receive(frame);
  }

  #write(message: Uint8Array | LargeMessage): void {
    if (this.#isClosed) return;
    this.#outgoing.add(message);
    const { unread } = this.#outgoing;
    if (unread > this.#limits.maxUnreadBytes) this.close(`it did not read ${unread} bytes`);
  }

  #reportDropped(): void {
    for (const [sessionId, count] of this.#dropped) {
      this.#dropped.delete(sessionId);
      const message = `This client reads too slowly: ${count} message deltas were dropped. Complete messages were not.`;
      const data = { warningType: "slow_client", message };
      const now = new Date().toISOString();
      const event = { id: crypto.randomUUID(), timestamp: now, parentId: null, ephemeral: true };
      this.notify("session.event", { sessionId, event: { ...event, type: "session.warning", data } });
    }
  }
}
