/** Limits that several processes share. A request needs the right from here in addition to the process's own limiter. */

import type { LimiterWait, Pass } from "./limiter.ts";

export interface SharedLimits {
  /** Returns the limit that applies to the model. */
  of(providerId: string, model: string): SharedLimit;
}

export interface SharedLimit {
  /**
   * Resolves when a request may be sent at once, whatever other processes do. Rejects with a `ModelError` when waiting is
   * pointless, or with the abort reason.
   */
  enter(signal: AbortSignal, onWait?: (wait: LimiterWait) => void): Promise<Pass>;
}

/** Returns one pass for the process's own limit and the shared one. */
export async function enterBoth(
  own: Pass,
  shared: SharedLimit,
  signal: AbortSignal,
  onWait?: (wait: LimiterWait) => void,
): Promise<Pass> {
  const passes = [own];
  const release = (): void => {
    for (const pass of passes) pass.release();
  };
  const enter = async (): Promise<void> => void passes.push(await shared.enter(signal, onWait));
  try {
    await enter();
  } catch (error) {
    release();
    throw error;
  }
  return {
    accepted: () => {
      for (const pass of passes) pass.accepted();
    },
    failed: (error, delayMs) => {
      for (const pass of passes) pass.failed(error, delayMs);
    },
    again: enter,
    release,
  };
}
