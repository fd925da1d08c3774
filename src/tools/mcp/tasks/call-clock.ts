/** The time a call may take: so long between signs of life, so long in all. It stands still while a person is asked. */

export interface CallClock {
  /** Aborted when the time is over, with what was over as the reason. */
  readonly signal: AbortSignal;
  /** The server showed that it works. */
  touch(): void;
  /** It may take as long as this in all, if that is more. */
  extend(totalMs: number): void;
  /** Stands still until the work is done. */
  pauseFor<T>(work: () => Promise<T>): Promise<T>;
  stop(): void;
}

/** Our own clocks end what takes too long; those of the library must only not be in the way. */
export const LIBRARY_MS = 2 ** 31 - 1;

export class CallTimeout extends Error {
  override readonly name = "CallTimeout";
}

export function callClock({ silenceMs, totalMs }: { silenceMs: number; totalMs: number }): CallClock {
  const controller = new AbortController();
  let total = totalMs;
  let left = totalMs;
  let since = performance.now();
  let pauses = 0;
  let timer: NodeJS.Timeout | undefined;

  function spend(): void {
    const now = performance.now();
    left -= now - since;
    since = now;
  }

  function run(): void {
    clearTimeout(timer);
    const isLast = left <= silenceMs;
    const reason =
      isLast && total > silenceMs ? `did not end within ${total / 1000} s` : `was silent for ${silenceMs / 1000} s`;
    timer = setTimeout(() => controller.abort(new CallTimeout(reason)), Math.max(0, Math.min(silenceMs, left)));
  }

  run();
  return {
    signal: controller.signal,
    touch() {
      if (pauses > 0 || controller.signal.aborted) return;
      spend();
      run();
    },
    extend(wanted) {
      if (wanted <= total) return;
      left += wanted - total;
      total = wanted;
      this.touch();
    },
    async pauseFor(work) {
      if (pauses++ === 0) {
        spend();
        clearTimeout(timer);
      }
      try {
        return await work();
      } finally {
        if (--pauses === 0 && !controller.signal.aborted) {
          since = performance.now();
          run();
        }
      }
    },
    stop: () => {
      pauses++;
      clearTimeout(timer);
    },
  };
}
