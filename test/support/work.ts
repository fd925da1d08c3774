/**
 * Bounds that hold on a busy machine. Measure work with `processorTime`. Use `HANG_MS` where a test shows that something
 * does not wait: let the thing it must not wait for last longer than this, or for ever.
 */

/** More than any delay that a busy machine causes, less than the timeout of a test. */
export const HANG_MS = 20_000;

/** Starts to measure. The result returns the processor time that this process has used since, in milliseconds. */
export function processorTime(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
}

/** Runs `work` several times and returns the least processor time of one run: collections of garbage do not count. */
export async function leastProcessorTime(work: () => unknown, rounds = 5): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const spent = processorTime();
    await work();
    times.push(spent());
  }
  return Math.min(...times);
}

/** Watches the event loop. The result stops it and returns the most processor time between two turns of the loop. */
export function watchLoop(everyMs = 5): () => number {
  let most = 0;
  let spent = processorTime();
  const beat = setInterval(() => {
    most = Math.max(most, spent());
    spent = processorTime();
  }, everyMs);
  return () => {
    clearInterval(beat);
    return Math.max(most, spent());
  };
}
