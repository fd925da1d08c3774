/** Ids and time are passed in, so that a test run is repeatable to the byte and a wait of two minutes takes no time. */
export interface Stamp {
  /** Returns a new unique id. The prefix is a hint for readable test ids; real ids are UUIDs. */
  id(prefix: string): string;
  /** Wall clock in milliseconds; may jump. Use it only for display. */
  now(): number;
  /** Monotonic clock in milliseconds. Use it for durations, back-off and timeouts. */
  monotonic(): number;
  /** Resolves after `milliseconds`. Rejects with the signal's reason as soon as it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export const systemStamp: Stamp = {
  id: () => crypto.randomUUID(),
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, milliseconds);
      signal?.addEventListener("abort", stop, { once: true });
    });
  },
};
