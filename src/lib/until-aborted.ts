/** Rejects when the signal aborts. The signal must belong to the caller: it keeps the listener. */
export function rejectWhenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Returns the result of `work`, or of `instead` when the signal aborts. Work that ignores the abort is abandoned. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal, instead: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => resolve(instead());
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}
