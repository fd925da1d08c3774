/**
 * One client: a stream in, a stream out. What it is told waits in its own buffer, so that a slow client slows nobody else:
 * first it does without the words as they arrive, which are repeated in whole messages; one that is hopelessly behind is
 * let go of, and can come back and read what it missed.
 */
import type { Readable, Writable } from "node:stream";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { encodeFrame, FrameReader, FramingError } from "../protocol/rpc/frame.ts";
import { type AskOptions, Peer } from "../protocol/rpc/peer.ts";
import { encodeAnswer, type LargeMessage } from "./large-answer.ts";
import { Outgoing } from "./outgoing.ts";

/** Who a client is that we started ourselves. */
export interface ExtensionIdentity {
  readonly id: string;
  readonly name: string;
  /** The only one it may know of. */
  readonly sessionId: string;
  /** Whose words count for as much as its own. */
  readonly scope: "user" | "project";
  /** What a person lets it answer in their place, by the methods that answer it. */
  answers?: ReadonlySet<string>;
  /** The user's answer for each of its factories: the number of agents a run may have, or 0 for a refusal. */
  readonly factories: Map<string, Promise<number>>;
}

export interface ConnectionOptions {
  readonly id: string;
  readonly input: Readable;
  readonly output: Writable;
  /** Set where a client must show that it was invited. */
  readonly token?: string;
  readonly extension?: ExtensionIdentity;
  handle(connection: Connection, method: string, params: unknown, signal: AbortSignal): Promise<unknown>;
  /** Called once, when the token was presented. Throws when there is no room for another client. */
  onAdmitted?(connection: Connection): void;
  onClose(connection: Connection): void;
  /** For people: why a client was let go of. */
  onTrouble(message: string, connection: Connection): void;
  readonly limits?: Partial<ConnectionLimits>;
}

interface ConnectionLimits {
  /** Beyond this much unread, what is repeated later anyway is left out. */
  readonly slowBytes: number;
  /** Beyond this much unread, the client is let go of. */
  readonly lostBytes: number;
  /** How long a message that has begun may stand still. */
  readonly stallMs: number;
  /** How long a client may read nothing of an answer that is sent piece by piece. */
  readonly unreadMs: number;
  /** How long a client that must show a token may wait with it. */
  readonly greetingMs: number;
  /** How many bytes are read before the token was shown, in all. */
  readonly greetingBytes: number;
}

const limits: ConnectionLimits = {
  slowBytes: 8 * 1024 * 1024,
  lostBytes: 64 * 1024 * 1024,
  stallMs: 30_000,
  unreadMs: 300_000,
  greetingMs: 2_000,
  greetingBytes: 4096,
};

export class Connection {
  readonly id: string;
  /** Set for an extension: it may do less than a client that a person has started. */
  readonly extension: ExtensionIdentity | undefined;
  readonly #options: ConnectionOptions;
  readonly #limits: ConnectionLimits;
  readonly #peer: Peer;
  readonly #reader = new FrameReader();
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #outgoing: Outgoing;
  #stall: NodeJS.Timeout | undefined;
  #greeting: NodeJS.Timeout | undefined;
  /** Bytes read before the token was shown. */
  #greeted = 0;
  #isClosed = false;
  /** Why it was let go of, where it was. */
  closedFor: string | undefined;
  /** Words left out since the client was last told so, by session. */
  readonly #leftOut = new Map<string, number>();
  /** False until a client that needs a token has shown it. */
  isAdmitted: boolean;
  /** It asked to be told figures of every session. */
  wantsTelemetry = false;
  /** Kinds of tasks that it understands. */
  taskKinds: ReadonlySet<string> = new Set();

  constructor(options: ConnectionOptions) {
    this.id = options.id;
    this.extension = options.extension;
    this.#options = options;
    this.#limits = { ...limits, ...options.limits };
    this.#input = options.input;
    this.#output = options.output;
    this.isAdmitted = options.token === undefined;
    this.#outgoing = new Outgoing({
      output: options.output,
      stallMs: this.#limits.unreadMs,
      onLost: (why) => this.close(why),
    });
    this.#peer = new Peer({
      send: (message) => this.#write("result" in message ? encodeAnswer({ ...message }) : encodeFrame(message)),
      handle: (method, params, signal) => options.handle(this, method, params, signal),
    });
    if (!this.isAdmitted) {
      // After a pause of this process, what arrived in time is read first.
      this.#greeting = setTimeout(() => setImmediate(() => this.#requireGreeting()), this.#limits.greetingMs);
    }
    this.#input.on("data", (chunk: Buffer) => this.#read(chunk));
    for (const end of ["end", "close", "error"]) this.#input.on(end, () => this.close());
    for (const end of ["close", "error"]) this.#output.on(end, () => this.close());
    this.#output.on("drain", () => this.#tellLeftOut());
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get token(): string | undefined {
    return this.#options.token;
  }

  /** Called when the token was presented; throws when there is no room for another client. */
  admit(): void {
    if (this.isAdmitted) return;
    this.#options.onAdmitted?.(this);
    this.isAdmitted = true;
    clearTimeout(this.#greeting);
  }

  /** Asks the client; rejects when it fails, is late or goes away. */
  ask(method: string, params: object, options?: AskOptions): Promise<unknown> {
    return this.#peer.ask(method, params, options);
  }

  notify(method: string, params: object): void {
    this.#peer.notify(method, params);
  }

  /** An event that all clients of a session are told, made into bytes once for all of them. */
  tell(frame: Uint8Array, about: { readonly sessionId: string; readonly isRepeatedLater: boolean }): void {
    if (about.isRepeatedLater && this.#outgoing.unread > this.#limits.slowBytes) {
      this.#leftOut.set(about.sessionId, (this.#leftOut.get(about.sessionId) ?? 0) + 1);
      return;
    }
    this.#write(frame);
  }

  /** Something to know that is out of date soon: who is behind does without it, unless it `mustArrive`. */
  hint(frame: Uint8Array, { mustArrive }: { readonly mustArrive: boolean }): void {
    if (mustArrive || this.#outgoing.unread <= this.#limits.slowBytes) this.#write(frame);
  }

  /** Who has gone while it was kept waiting has left already, and would never leave again. */
  requireThere(): void {
    if (this.#isClosed) throw new RpcError(rpcCodes.refused, "The client has gone.");
  }

  /** `why` is said to people; without it the client left by itself. */
  close(why?: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.closedFor = why;
    clearTimeout(this.#stall);
    clearTimeout(this.#greeting);
    if (why !== undefined) this.#options.onTrouble(`client ${this.id} was let go of: ${why}`, this);
    this.#outgoing.end();
    this.#peer.close("The connection is closed.");
    this.#input.destroy();
    this.#output.end();
    if (why !== undefined) this.#output.destroy();
    this.#options.onClose(this);
  }

  #requireGreeting(): void {
    if (!this.isAdmitted) this.close("it did not show its token in time");
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

  /** Reads as much as a stranger may send. Returns the rest, which is read only if the token was in it. */
  #readGreeting(chunk: Buffer): Buffer {
    const allowed = chunk.subarray(0, this.#limits.greetingBytes - this.#greeted);
    this.#greeted += allowed.length;
    this.#receive(allowed);
    const rest = chunk.subarray(allowed.length);
    if (this.isAdmitted || rest.length === 0) return rest;
    throw new FramingError(`it sent more than ${this.#limits.greetingBytes} bytes without a token`);
  }

  #receive(chunk: Buffer): void {
    for (const frame of this.#reader.read(chunk)) this.#peer.receive(frame);
  }

  #write(message: Uint8Array | LargeMessage): void {
    if (this.#isClosed) return;
    this.#outgoing.add(message);
    const { unread } = this.#outgoing;
    if (unread > this.#limits.lostBytes) this.close(`it did not read ${unread} bytes`);
  }

  #tellLeftOut(): void {
    for (const [sessionId, count] of this.#leftOut) {
      this.#leftOut.delete(sessionId);
      const message = `This client reads too slowly: ${count} parts of messages were left out; the messages are whole.`;
      const data = { warningType: "slow_client", message };
      const now = new Date().toISOString();
      const event = { id: crypto.randomUUID(), timestamp: now, parentId: null, ephemeral: true };
      this.notify("session.event", { sessionId, event: { ...event, type: "session.warning", data } });
    }
  }
}
