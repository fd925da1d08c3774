/**
 * Connections that have not presented the connection token yet. They have separate slots, so that they never take the
 * slots of clients. When the slots are full, the oldest connections are closed: a program that opens many evicts its
 * own.
 */
import type { ClientConnection } from "./connection.ts";

/** Above this number, the oldest connections that had enough time to present a token are closed. */
const MAX_PENDING = 64;
const PATIENCE_MS = 500;
/** Above this number, connections are closed immediately. */
const MAX_BURST = 512;
const LOOK_MS = 50;
/** At most one report in this time, however many connections are closed. */
const REPORT_MS = 60_000;

export class PendingConnections {
  /** The time each connection was opened, the oldest first. */
  readonly #pending = new Map<ClientConnection, number>();
  readonly #say: (message: string) => void;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #look: NodeJS.Timeout | undefined;
  #isTrimming = false;

  constructor(say: (message: string) => void) {
    this.#say = say;
  }

  add(connection: ClientConnection): void {
    this.#pending.set(connection, performance.now());
    if (this.#pending.size > MAX_PENDING) this.#look ??= setInterval(() => this.#trim(), LOOK_MS).unref();
    if (this.#pending.size <= MAX_BURST || this.#isTrimming) return;
    this.#isTrimming = true;
    // The event loop accepts a burst before it reads a byte. After one more poll, a client that was quick is no longer
    // pending.
    setImmediate(() => setImmediate(() => this.#trim()));
  }

  delete(connection: ClientConnection): void {
    this.#pending.delete(connection);
  }

  closeAll(): void {
    for (const connection of [...this.#pending.keys()]) connection.close();
  }

  /** Unknown programs decide how often this happens, so it is reported once a minute. */
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
      connection.close("too many connections have not sent a token");
    }
    if (this.#pending.size > MAX_PENDING) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }
}
