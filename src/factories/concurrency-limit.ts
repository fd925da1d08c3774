import { type Deferred, deferred } from "../lib/deferred.ts";

/** Limits concurrency. Waiters enter in first-in, first-out order. */
export class ConcurrencyLimit {
  readonly #waiting: Deferred<void>[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a free slot. Rejects if the signal aborts first. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const turn = deferred<void>();
    this.#waiting.push(turn);
    const giveUp = (): void => {
      const index = this.#waiting.indexOf(turn);
      if (index >= 0) this.#waiting.splice(index, 1);
      turn.reject(signal.reason);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    await turn.promise.finally(() => signal.removeEventListener("abort", giveUp));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next.resolve();
    else this.#free++;
  }
}
