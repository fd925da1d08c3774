/** Time limits of a call: between progress messages and in total. The clock is paused while the user is asked. */

export interface CallClock {
  /** Aborts on timeout, with the exceeded limit as the reason. */
  readonly signal: AbortSignal;
  /** Call this on progress of the server. */
  touch(): void;
  /** Raises the total limit to this, if it is more. */
  extend(totalMs: number): void;
  /** Pauses until the work is done. */
  pauseFor<T>(work: () => Promise<T>): Promise<T>;
  stop(): void;
}

/** Our own clocks apply; the library's timeouts must never fire first. */
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
