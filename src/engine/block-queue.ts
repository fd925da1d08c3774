/**
 * Queues the callers of one process for a limit that all workers share. The process reserves amounts in blocks: one
 * statement at a time serves all that wait. What is reserved belongs to the worker while its lease is valid. The
 * statements report absolute amounts, so repeating one after an outage changes nothing.
 */

import { isPassing, type Queries } from "../lib/queries.ts";

export interface BlockOptions {
  readonly queries: Queries;
  readonly workerId: string;
  readonly leaseMs: number;
}

export interface BlockWaiter<Wanted, Right> {
  readonly wanted: Wanted;
  admit(right: Right): void;
  reject(error: unknown): void;
}

/**
 * Interval at which an unlimited process looks for a new limit. Until then its calls need no statement, so a new limit
 * holds for calls that begin this much later.
 */
export const FREE_MS = 500;

/** Runs one statement and admits or rejects waiters. Returns the time to pause before the next one. */
type Step<Wanted, Right> = (waiting: readonly BlockWaiter<Wanted, Right>[]) => Promise<number>;

const OUTAGE_PAUSE_MS = 500;

export class BlockQueue<Wanted, Right> {
  readonly #step: Step<Wanted, Right>;
  #waiting: readonly BlockWaiter<Wanted, Right>[] = [];
  #mustReport = false;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  #later: NodeJS.Timeout | undefined;

  constructor(step: Step<Wanted, Right>) {
    this.#step = step;
  }

  get waiting(): readonly BlockWaiter<Wanted, Right>[] {
    return this.#waiting;
  }

  /** Resolves when a step admits the caller. Rejects with the abort reason, or with an error that would repeat. */
  enter(wanted: Wanted, signal: AbortSignal): Promise<Right> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        signal.removeEventListener("abort", abort);
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
      };
      const abort = (): void => waiter.reject(signal.reason);
      const waiter: BlockWaiter<Wanted, Right> = {
        wanted,
        admit(right) {
          leave();
          resolve(right);
        },
        reject(error) {
          leave();
          reject(error);
        },
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting = [...this.#waiting, waiter];
      this.#pump();
    });
  }

  /** Makes sure that a statement follows, also if nobody waits: the amounts of this process have changed. */
  report(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#mustReport = true;
    this.#pump();
  }

  /** The same a little later, together with what changes until then. */
  reportSoon(): void {
    this.#later ??= setTimeout(() => this.report(), FREE_MS).unref();
  }

  /** Ends a pause early. */
  wake(): void {
    this.#wake?.();
  }

  /** Resolves when everything is reported, or reporting it failed for good. */
  async flush(): Promise<void> {
    if (this.#later !== undefined) this.report();
    while (this.#running) await this.#running;
  }

  #pump(): void {
    this.#wake?.();
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0 || this.#mustReport) this.#pump();
    });
  }

  async #run(): Promise<void> {
    // Callers that arrive in the same tick share a statement.
    await Promise.resolve();
    while (this.#waiting.length > 0 || this.#mustReport) {
      this.#mustReport = false;
      const pauseMs = await this.#step(this.#waiting).catch((error: unknown) => this.#failed(error));
      if (pauseMs > 0) await this.#pause(pauseMs);
    }
  }

  /** Returns the time until the next attempt. What would fail again rejects all that wait. */
  #failed(error: unknown): number {
    if (isPassing(error)) {
      this.#mustReport = true;
      return OUTAGE_PAUSE_MS;
    }
    const waiting = this.#waiting;
    for (const waiter of waiting) waiter.reject(error);
    if (waiting.length === 0) process.emitWarning(error instanceof Error ? error : String(error));
    return 0;
  }

  /** Waits, with jitter so that workers do not ask at the same time. */
  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(done, delayMs * (0.75 + Math.random() / 2));
      this.#wake = done;
    });
  }
}
