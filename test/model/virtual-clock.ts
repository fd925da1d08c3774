import type { Stamp } from "../../src/lib/stamp.ts";

/** A stamp whose hours pass in an instant: when nothing else can happen, time jumps to the next sleeper. */
export interface VirtualClock extends Stamp {
  /** Lets time pass until `work` settles. */
  during<T>(work: Promise<T>): Promise<T>;
  /** Moves the wall clock only, as a user or a time server would. */
  setWallClock(milliseconds: number): void;
}

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

export function virtualClock(start = 1_000_000): VirtualClock {
  let time = start;
  let wallOffset = Date.UTC(2026, 0, 1) - start;
  let ids = 0;
  const sleepers: Sleeper[] = [];
  return {
    id: (prefix) => `${prefix}_${++ids}`,
    now: () => time + wallOffset,
    monotonic: () => time,
    setWallClock: (milliseconds) => {
      wallOffset = milliseconds - time;
    },
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const stop = (): void => {
          const place = sleepers.indexOf(sleeper);
          if (place !== -1) sleepers.splice(place, 1);
          reject(signal?.reason);
        };
        const wake = (): void => {
          signal?.removeEventListener("abort", stop);
          resolve();
        };
        const sleeper: Sleeper = { at: time + Math.max(0, milliseconds), wake };
        sleepers.push(sleeper);
        signal?.addEventListener("abort", stop, { once: true });
      }),
    async during(work) {
      let settled = false;
      const done = (): void => {
        settled = true;
      };
      work.then(done, done);
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (settled) return work;
        const next = sleepers.reduce<Sleeper | undefined>(
          (a, b) => (a === undefined || b.at < a.at ? b : a),
          undefined,
        );
        if (next === undefined) throw new Error("nothing is left that could happen, and the work is not done");
        sleepers.splice(sleepers.indexOf(next), 1);
        time = Math.max(time, next.at);
        next.wake();
      }
    },
  };
}
