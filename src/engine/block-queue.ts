/**
 * Callers of one process that wait for a share of the same row, which all workers draw from in blocks. One statement at a
 * time serves all that wait. What was drawn belongs to the worker while its lease is valid. The statements report absolute
 * amounts, so repeating one after an outage changes nothing.
 */

import type { Queries } from "../lib/queries.ts";

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
 * While nothing is limited, no statement is needed before a call: another one looks again after this time. So a new limit
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

  /** Resolves when a step admits the caller. Rejects with the step's error or the abort reason. */
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

  /** Resolves when everything is reported. */
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
      const pauseMs = await this.#step(this.#waiting).catch(() => {
        this.#mustReport = true;
        return OUTAGE_PAUSE_MS;
      });
      if (pauseMs > 0) await this.#pause(pauseMs);
    }
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
