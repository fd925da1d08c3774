/**
 * Slots for running agents, granted in first-in, first-out order. An agent that waits for another lends it its slot, so
 * a tree of any depth can finish with any number of slots. A lent slot is not counted twice.
 */
import { deferred } from "../lib/deferred.ts";

export interface SlotLimits {
  readonly maxConcurrency: number;
  /** `queue`: a start waits for a free slot. `reject`: it fails. */
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
  /** Lender of a slot → borrower. */
  readonly #loans = new Map<string, string>();
  /** Awaited agent → waiting agent. */
  readonly #awaited = new Map<string, string>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Whether a start would now have to wait or be rejected. */
  get isFull(): boolean {
    return this.#waiting.length > 0 || this.#used >= this.#limits.maxConcurrency;
  }

  get waiting(): readonly string[] {
    return this.#waiting.map(({ id }) => id);
  }

  holds(id: string): boolean {
    return this.#holders.has(id);
  }

  /** Enters the queue immediately. Resolves when `id` has a slot. On abort, leaves the queue and rejects. */
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

  /** Releases the slot of `id`, if it has one. */
  release(id: string): void {
    if (!this.#holders.delete(id)) return;
    const borrower = this.#loans.get(id);
    const [lender] = [...this.#loans].find(([, borrowed]) => borrowed === id) ?? [];
    this.#loans.delete(id);
    // A borrower keeps the slot and now owes it to the original lender. Without a borrower, the slot returns to the
    // lender.
    if (lender !== undefined && borrower !== undefined) this.#loans.set(lender, borrower);
    else if (lender !== undefined) this.#loans.delete(lender);
    this.#pump();
  }

  /** Lends the slot of `waiter` while it waits for `awaited`. Returns a function that undoes this. */
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
