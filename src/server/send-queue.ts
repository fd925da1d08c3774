import { once } from "node:events";
import type { Writable } from "node:stream";
import type { LargeMessage } from "./large-answer.ts";

export interface SendQueueOptions {
  readonly output: Writable;
  /** How long a client may leave a large response unread. */
  readonly stallMs: number;
  /** Called when nothing more can be sent to the client. */
  onLost(why: string): void;
}

/** The messages for one client, in order. Messages after a large response wait until it was sent. */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #ended = new AbortController();
  #waiting: (Uint8Array | LargeMessage)[] = [];
  #waitingBytes = 0;
  #isSending = false;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  /** Number of bytes that wait for the client. A large response counts only with its encoded part. */
  get unread(): number {
    return this.#options.output.writableLength + this.#waitingBytes;
  }

  add(message: Uint8Array | LargeMessage): void {
    if (this.#ended.signal.aborted) return;
    if (!this.#isSending && message instanceof Uint8Array) {
      this.#options.output.write(message);
      return;
    }
    this.#waiting.push(message);
    if (message instanceof Uint8Array) this.#waitingBytes += message.byteLength;
    if (!this.#isSending) void this.#sendWaiting();
  }

  /** Sends nothing more. */
  end(): void {
    this.#ended.abort();
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  async #sendWaiting(): Promise<void> {
    this.#isSending = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        if (next instanceof Uint8Array) {
          this.#waitingBytes -= next.byteLength;
          await this.#send(next);
        } else await this.#sendLarge(next);
      }
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      this.#options.onLost(error instanceof Error ? error.message : String(error));
    } finally {
      this.#isSending = false;
    }
  }

  async #sendLarge(message: LargeMessage): Promise<void> {
    let hasBegun = false;
    try {
      for await (const piece of message.pieces()) {
        hasBegun = true;
        await this.#send(piece);
      }
    } catch (error) {
      if (hasBegun) throw error; // the client cannot parse what follows a partial message
      await this.#send(message.refusal(error));
    }
  }

  async #send(bytes: Uint8Array): Promise<void> {
    this.#ended.signal.throwIfAborted();
    const { output, stallMs } = this.#options;
    if (output.write(bytes)) return;
    const late = AbortSignal.timeout(stallMs);
    await once(output, "drain", { signal: AbortSignal.any([late, this.#ended.signal]) }).catch((error: unknown) => {
      throw late.aborted ? new Error(`it read nothing of an answer for ${stallMs / 1000} s`) : error;
    });
  }
}
