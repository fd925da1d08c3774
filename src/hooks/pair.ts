/**
 * What starts also stops: once, and however it ends. Hooks that were told of a beginning and never of its end leave
 * things behind, so the promise is kept here and not by everyone who ends something.
 */

export interface PairParts<S, E, R> {
  start(): Promise<S>;
  /** Must not depend on a signal that may have aborted already: ends are told also after an abort. */
  stop(ending: E): Promise<R>;
  /** True when the stop was held up and a later one will follow, as a blocked subagent's. */
  isHeldUp?(result: R): boolean;
}

export interface Pair<S, E, R> {
  /** Once; from here on a stop is owed, also when this rejects. */
  start(): Promise<S>;
  /**
   * Does nothing when there was no start. The first that is not held up is the last: further ones, also those made while
   * it is under way, get its result.
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

/** Runs `work` between the two; the stop is told how it ended, and a failing stop does not hide a failing work. */
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

/** Counts how often in a row a stop was held up, so that a hook that always objects does not keep an agent for ever. */
export interface BlockGuard {
  /** What hooks are told as `stop_hook_active`. */
  readonly isActive: boolean;
  /** True when this decision holds the agent up; false when it may stop, or was held up often enough. */
  holdsUp(decision: "block" | "allow" | undefined): boolean;
  /** To be called when the user says something new. */
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
