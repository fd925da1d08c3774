/**
 * The claims of the activations that run on this worker. A worker that lost a session may get it again while the earlier
 * activation still runs. That one must not take the session with the claim of the later one.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Claim } from "../../engine/engine.ts";

export interface SessionClaim extends Claim {
  readonly sessionId: string;
  readonly tenant: string;
}

export class Claims {
  readonly #own = new AsyncLocalStorage<SessionClaim>();
  #count = 0;

  /** Number of activations that run. */
  get count(): number {
    return this.#count;
  }

  /** Runs an activation. What it calls finds this claim. */
  async hold<T>(claim: SessionClaim, activation: () => Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await this.#own.run(claim, activation);
    } finally {
      this.#count--;
    }
  }

  /** Returns the claim of the calling activation, if it is one on this session. */
  of(sessionId: string): SessionClaim | undefined {
    const own = this.#own.getStore();
    return own?.sessionId === sessionId ? own : undefined;
  }
}
