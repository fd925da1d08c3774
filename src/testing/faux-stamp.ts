/** Clocks for tests: an automatic one, and one that moves only when the test advances it. */
import type { Stamp } from "../lib/stamp.ts";

export interface FauxStampOptions {
  /** The first value of `now()`. Default: the start of 2026. */
  readonly start?: number;
  /** How far each `now()` moves the wall clock. Default: one second. */
  readonly tickMs?: number;
}

/**
 * Ids count per prefix (`evt-1`, `evt-2`), and each `now()` is a tick later than the last. A sleep passes at once and
 * moves both clocks by its length. For code that races a sleep against something else use `virtualClock`.
 */
export function fauxStamp(options: FauxStampOptions = {}): Stamp {
  const tickMs = options.tickMs ?? 1000;
  let wall = options.start ?? START;
  let elapsed = 0;
  return {
    id: countingIds(),
    now() {
      const now = wall;
      wall += tickMs;
      return now;
    },
    monotonic: () => elapsed,
    async sleep(milliseconds, signal) {
      signal?.throwIfAborted();
      wall += atLeastZero(milliseconds);
      elapsed += atLeastZero(milliseconds);
    },
  };
}

export interface VirtualClock extends Stamp {
  /** Pending sleeps, the next one first. */
  readonly pending: readonly PendingSleep[];
  /**
   * Moves time forward and wakes sleepers in the order they are due. Includes sleeps that begin meanwhile and fall
   * within.
   */
  advance(milliseconds: number): Promise<void>;
  /**
   * Moves time forward until no sleep is pending. Throws after `maxSleeps`, since a loop that always sleeps again would
   * never end.
   */
  runAll(maxSleeps?: number): Promise<void>;
  /** Resolves when this many sleeps are pending. Rejects after `withinMs` of real time. */
  untilAsleep(count?: number, withinMs?: number): Promise<void>;
}

export interface PendingSleep {
  readonly milliseconds: number;
  /** On the monotonic clock. */
  readonly dueMs: number;
}

interface Sleeper extends PendingSleep {
  wake(): void;
}

/** Time moves only by `advance` and `runAll`. `now()` starts with 2026 and advances with `monotonic()`. */
export function virtualClock(options: { readonly start?: number } = {}): VirtualClock {
  const start = options.start ?? START;
  const sleeping = new Sleepers();
  return {
    id: countingIds(),
    now: () => start + sleeping.elapsed,
    monotonic: () => sleeping.elapsed,
    sleep: (milliseconds, signal) => sleeping.add(milliseconds, signal),
    get pending() {
      return sleeping.pending;
    },
    async advance(milliseconds) {
      const target = sleeping.elapsed + atLeastZero(milliseconds);
      await settle();
      while (sleeping.wakeNext(target)) await settle();
      sleeping.elapsed = target;
    },
    async runAll(maxSleeps = 10_000) {
      await settle();
      for (let woken = 0; sleeping.wakeNext(Number.POSITIVE_INFINITY); woken++) {
        if (woken >= maxSleeps)
          throw new Error(`virtual clock: still asleep after ${maxSleeps} sleeps: an endless loop?`);
        await settle();
      }
    },
    untilAsleep: (count = 1, withinMs = 5000) => sleeping.until(count, withinMs),
  };
}

/** The pending sleeps of a virtual clock, in the order they are due. */
class Sleepers {
  /** Time that has passed, in milliseconds. */
  elapsed = 0;
  readonly #sleepers: Sleeper[] = [];
  readonly #watchers = new Set<() => void>();

  get pending(): PendingSleep[] {
    return this.#sleepers.map(({ milliseconds, dueMs }) => ({ milliseconds, dueMs }));
  }

  add(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = (): void => {
        this.#sleepers.splice(this.#sleepers.indexOf(sleeper), 1);
        reject(signal?.reason);
      };
      const wake = (): void => {
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      const sleeper: Sleeper = { milliseconds, dueMs: this.elapsed + atLeastZero(milliseconds), wake };
      const later = this.#sleepers.findIndex(({ dueMs }) => dueMs > sleeper.dueMs);
      this.#sleepers.splice(later === -1 ? this.#sleepers.length : later, 0, sleeper);
      signal?.addEventListener("abort", stop, { once: true });
      for (const watcher of [...this.#watchers]) watcher();
    });
  }

  /** Wakes the next sleeper that is due by then. Returns false if there is none. */
  wakeNext(until: number): boolean {
    const next = this.#sleepers[0];
    if (!next || next.dueMs > until) return false;
    this.#sleepers.shift();
    this.elapsed = Math.max(this.elapsed, next.dueMs);
    next.wake();
    return true;
  }

  /** Resolves when this many sleeps are pending. Rejects after `withinMs` of real time. */
  until(count: number, withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#watchers.delete(look);
        clearTimeout(timer);
      };
      const look = (): void => {
        if (this.#sleepers.length < count) return;
        done();
        resolve();
      };
      const timer = setTimeout(() => {
        done();
        reject(new Error(`virtual clock: ${this.#sleepers.length} asleep, not ${count}, after ${withinMs} ms`));
      }, withinMs);
      this.#watchers.add(look);
      look();
    });
  }
}

const START = Date.UTC(2026, 0, 1);

function countingIds(): Stamp["id"] {
  const counts = new Map<string, number>();
  return (prefix) => {
    const next = (counts.get(prefix) ?? 0) + 1;
    counts.set(prefix, next);
    return `${prefix}-${next}`;
  };
}

/** Runs everything that is ready, so that woken code can begin its next sleep before time moves on. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function atLeastZero(milliseconds: number): number {
  return milliseconds > 0 ? milliseconds : 0;
}
