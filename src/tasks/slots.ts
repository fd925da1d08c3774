/**
 * Places for agents at work. Who waits longest is next. An agent that waits for another lends it its place, so that
 * a tree of any depth gets through any number of places; a lent place is no second one.
 */
import { deferred } from "../lib/deferred.ts";

export interface SlotLimits {
  readonly maxConcurrency: number;
  /** What becomes of a start when no place is free. */
  readonly whenFull: "queue" | "reject";
}

interface Waiter {
  readonly id: string;
  readonly admit: () => void;
}

export class Slots {
  readonly #limits: SlotLimits;
  readonly #waiting: Waiter[] = [];
  readonly #holders = new Set<string>();
  /** Who lent its place → who has it. */
  readonly #loans = new Map<string, string>();
  /** Who is waited for → by whom. */
  readonly #awaited = new Map<string, string>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Whether a start now would have to wait, or be refused. */
  get isFull(): boolean {
    return this.#waiting.length > 0 || this.#used >= this.#limits.maxConcurrency;
  }

  get waiting(): readonly string[] {
    return this.#waiting.map(({ id }) => id);
  }

  holds(id: string): boolean {
    return this.#holders.has(id);
  }

  /** In the queue from this call on. Resolves when `id` has a place; rejects, out of the queue again, when aborted. */
  take(id: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = deferred<void>();
    const abort = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      reject(signal.reason);
    };
    const waiter: Waiter = {
      id,
      admit: () => {
        signal.removeEventListener("abort", abort);
        this.#holders.add(id);
        resolve();
      },
    };
    signal.addEventListener("abort", abort, { once: true });
    this.#waiting.push(waiter);
    this.#pump();
    return promise;
  }

  /** May be called for one that holds none. */
  release(id: string): void {
    if (!this.#holders.delete(id)) return;
    const borrower = this.#loans.get(id);
    const [lender] = [...this.#loans].find(([, borrowed]) => borrowed === id) ?? [];
    this.#loans.delete(id);
    // Who has the place it had lent keeps it, and owes it to whom it owed it; without one it goes back.
    if (lender !== undefined && borrower !== undefined) this.#loans.set(lender, borrower);
    else if (lender !== undefined) this.#loans.delete(lender);
    this.#pump();
  }

  /** `waiter` does nothing until `awaited` rests. Undone by what is returned. */
  lend(waiter: string, awaited: string): () => void {
    this.#awaited.set(awaited, waiter);
    this.#pump();
    return () => {
      if (this.#awaited.get(awaited) === waiter) this.#awaited.delete(awaited);
      if (this.#loans.get(waiter) === awaited) this.#loans.delete(waiter);
    };
  }

  get #used(): number {
    return this.#holders.size - this.#loans.size;
  }

  #pump(): void {
    while (this.#used < this.#limits.maxConcurrency) {
      const first = this.#waiting.shift();
      if (!first) return;
      first.admit();
    }
    for (const waiter of [...this.#waiting]) {
      const lender = this.#awaited.get(waiter.id);
      if (lender === undefined || !this.#holders.has(lender) || this.#loans.has(lender)) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      this.#loans.set(lender, waiter.id);
      waiter.admit();
    }
  }
}
