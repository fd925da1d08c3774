/**
 * Pairs each start with exactly one stop, however the work ends. Hooks that see a start without a stop leave resources
 * behind, so the guarantee is implemented here once.
 */

export interface PairParts<S, E, R> {
  start(): Promise<S>;
  /** Must not depend on a signal that may already be aborted: stops are reported after an abort too. */
  stop(ending: E): Promise<R>;
  /** Returns true when the stop was blocked and a later one will follow, as for a blocked subagent. */
  isHeldUp?(result: R): boolean;
}

export interface Pair<S, E, R> {
  /** Runs once. After this call a stop is due, even if the start rejects. */
  start(): Promise<S>;
  /**
   * Does nothing without a start. The first stop that is not held up is final. Later and concurrent calls get its
   * result.
   */
  stop(ending: E): Promise<R | undefined>;
}

export function createPair<S, E, R>(parts: PairParts<S, E, R>): Pair<S, E, R> {
  let started: Promise<S> | undefined;
  let stopping: Promise<R> | undefined;
  return {
    start() {
      started ??= parts.start();
      return started;
    },
    async stop(ending) {
      if (started === undefined) return undefined;
      stopping ??= stopOnce(started, ending);
      return stopping;
    },
  };

  async function stopOnce(beginning: Promise<S>, ending: E): Promise<R> {
    await beginning.catch(() => undefined);
    const result = await parts.stop(ending);
    if (parts.isHeldUp?.(result)) stopping = undefined;
    return result;
  }
}

/**
 * Runs `work` between start and stop. The stop receives the outcome, and a failing stop does not hide a failure of
 * `work`.
 */
export async function paired<S, T, R>(parts: PairParts<S, Ended<T>, R>, work: (started: S) => Promise<T>): Promise<T> {
  const pair = createPair(parts);
  let value: T;
  try {
    value = await work(await pair.start());
  } catch (error) {
    await pair.stop({ ok: false, error }).catch(() => undefined);
    throw error;
  }
  await pair.stop({ ok: true, value });
  return value;
}

export type Ended<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** Counts consecutive blocked stops, so that a hook that always objects cannot keep an agent running forever. */
export interface BlockGuard {
  /** The value of `stop_hook_active` in the input of hooks. */
  readonly isActive: boolean;
  /** Returns true when this decision blocks the stop. Returns false when the agent may stop or the limit is reached. */
  holdsUp(decision: "block" | "allow" | undefined): boolean;
  /** Call this when the user submits a new prompt. */
  reset(): void;
}

export function blockGuard(limit = 8): BlockGuard {
  let blocks = 0;
  return {
    get isActive() {
      return blocks > 0;
    },
    holdsUp(decision) {
      if (decision === "block" && blocks < limit) {
        blocks++;
        return true;
      }
      blocks = 0;
      return false;
    },
    reset() {
      blocks = 0;
    },
  };
}
