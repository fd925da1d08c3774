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
  const sleepers: Sleeper[] = [];
  const watchers = new Set<() => void>();
  let elapsed = 0;

  const clock: VirtualClock = {
    id: countingIds(),
    now: () => start + elapsed,
    monotonic: () => elapsed,
    sleep(milliseconds, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const stop = (): void => {
          sleepers.splice(sleepers.indexOf(sleeper), 1);
          reject(signal?.reason);
        };
        const wake = (): void => {
          signal?.removeEventListener("abort", stop);
          resolve();
        };
        const sleeper: Sleeper = { milliseconds, dueMs: elapsed + atLeastZero(milliseconds), wake };
        const later = sleepers.findIndex(({ dueMs }) => dueMs > sleeper.dueMs);
        sleepers.splice(later === -1 ? sleepers.length : later, 0, sleeper);
        signal?.addEventListener("abort", stop, { once: true });
        for (const watcher of [...watchers]) watcher();
      });
    },
    get pending() {
      return sleepers.map(({ milliseconds, dueMs }) => ({ milliseconds, dueMs }));
    },
    async advance(milliseconds) {
      const target = elapsed + atLeastZero(milliseconds);
      await settle();
      while (wakeNext(target)) await settle();
      elapsed = target;
    },
    async runAll(maxSleeps = 10_000) {
      await settle();
      for (let woken = 0; wakeNext(Number.POSITIVE_INFINITY); woken++) {
        if (woken >= maxSleeps)
          throw new Error(`virtual clock: still asleep after ${maxSleeps} sleeps: an endless loop?`);
        await settle();
      }
    },
    untilAsleep: (count = 1, withinMs = 5000) =>
      new Promise((resolve, reject) => {
        const done = (): void => {
          watchers.delete(look);
          clearTimeout(timer);
        };
        const look = (): void => {
          if (sleepers.length < count) return;
          done();
          resolve();
        };
        const timer = setTimeout(() => {
          done();
          reject(new Error(`virtual clock: ${sleepers.length} asleep, not ${count}, after ${withinMs} ms`));
        }, withinMs);
        watchers.add(look);
        look();
      }),
  };
  return clock;

  function wakeNext(until: number): boolean {
    const next = sleepers[0];
    if (!next || next.dueMs > until) return false;
    sleepers.shift();
    elapsed = Math.max(elapsed, next.dueMs);
    next.wake();
    return true;
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
