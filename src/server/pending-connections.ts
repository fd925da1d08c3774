/**
 * Connections that have not presented the connection token yet. They have slots of their own, so that strangers can never take
 * the slots of clients. When the slots are taken, the oldest connections are closed: whoever opens many only evicts itself.
 */
import type { Connection } from "./connection.ts";

/** More are closed, the oldest first, when they have had the time that any client needs. */
const MAX_PENDING = 64;
const PATIENCE_MS = 500;
/** More are closed at once. */
const MAX_BURST = 512;
const LOOK_MS = 50;
/** One report in this time, however many connections are closed. */
const REPORT_MS = 60_000;

export class PendingConnections {
  /** Since when each of them waits, the oldest first. */
  readonly #pending = new Map<Connection, number>();
  readonly #say: (message: string) => void;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #look: NodeJS.Timeout | undefined;
  #isTrimming = false;

  constructor(say: (message: string) => void) {
    this.#say = say;
  }

  add(connection: Connection): void {
    this.#pending.set(connection, performance.now());
    if (this.#pending.size > MAX_PENDING) this.#look ??= setInterval(() => this.#trim(), LOOK_MS).unref();
    if (this.#pending.size <= MAX_BURST || this.#isTrimming) return;
    this.#isTrimming = true;
    // The event loop accepts a burst before it reads a byte. After one more poll, a client that was quick is no longer pending.
    setImmediate(() => setImmediate(() => this.#trim()));
  }

  delete(connection: Connection): void {
    this.#pending.delete(connection);
  }

  closeAll(): void {
    for (const connection of [...this.#pending.keys()]) connection.close();
  }

  /** Strangers decide how often this happens, so it is reported once a minute. */
  report(message: string): void {
    if (performance.now() - this.#reportedAt < REPORT_MS) return;
    this.#reportedAt = performance.now();
    this.#say(`${message} (for one minute, no other connection without a token is reported)`);
  }

  #trim(): void {
    this.#isTrimming = false;
    const now = performance.now();
    for (const [connection, since] of [...this.#pending]) {
      const { size } = this.#pending;
      if (size <= MAX_PENDING || (size <= MAX_BURST && now - since < PATIENCE_MS)) break;
      connection.close("too many connections wait without having shown a token");
    }
    if (this.#pending.size > MAX_PENDING) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }
}
