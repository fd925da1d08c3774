/** Whoever takes no notice of an abort is left behind, and this is taken instead. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal, instead: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => resolve(instead());
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}
