/**
 * The claims of the activations that run on this worker. A worker that lost a session may get it again while the earlier
 * activation still runs. That one ends first, and must not take the session with the claim of the later one.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Claim } from "../../engine/engine.ts";
import { TroupeError } from "../../protocol/errors.ts";

export interface SessionClaim extends Claim {
  readonly sessionId: string;
  readonly tenant: string;
  /** The epoch under which the activation has taken the session, until it opens it. */
  taken?: string | undefined;
}

/** An activation that runs. */
interface Held {
  /** Aborts when a later activation of the session begins. */
  readonly replaced: AbortController;
  readonly ended: Promise<unknown>;
}

export class Claims {
  readonly #own = new AsyncLocalStorage<SessionClaim>();
  readonly #held = new Map<string, Held>();
  #count = 0;
  #isStopping = false;

  /** Number of activations that run. */
  get count(): number {
    return this.#count;
  }

  /**
   * Runs an activation. What it calls finds this claim. An earlier activation of the session is asked to end, and is waited
   * for. `isValid` says whether the claim is: an activation that lost its session does not end the one that has it.
   */
  async hold<T>(
    claim: SessionClaim,
    how: { readonly activation: (replaced: AbortSignal) => Promise<T>; readonly isValid: () => Promise<boolean> },
  ): Promise<T> {
    const { sessionId } = claim;
    if (this.#isStopping) throw lostClaim(sessionId);
    const earlier = this.#held.get(sessionId);
    if (earlier && !(await how.isValid())) throw lostClaim(sessionId);
    const replaced = new AbortController();
    this.#count++;
    const running = this.#own.run(claim, async () => {
      earlier?.replaced.abort();
      await earlier?.ended;
      return how.activation(replaced.signal);
    });
    const held = { replaced, ended: running.catch(() => undefined) };
    this.#held.set(sessionId, held);
    try {
      return await running;
    } finally {
      this.#count--;
      if (this.#held.get(sessionId) === held) this.#held.delete(sessionId);
    }
  }

  /** True when the worker gives up what runs. No further activation begins then. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Ends all activations without an outcome. Returns whether they ended in time. */
  async giveUp(timeoutMs: number): Promise<boolean> {
    this.#isStopping = true;
    const all = [...this.#held.values()];
    for (const { replaced } of all) replaced.abort();
    const isLate = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), timeoutMs).unref());
    return Promise.race([Promise.all(all.map(({ ended }) => ended)).then(() => true), isLate]);
  }

  /** Returns the claim of the calling activation, if it is one on this session. */
  of(sessionId: string): SessionClaim | undefined {
    const own = this.#own.getStore();
    return own?.sessionId === sessionId ? own : undefined;
  }
}

/** The activation is given up; the engine finds out whether another one runs. */
export const lostClaim = (sessionId: string): TroupeError =>
  new TroupeError("interrupted", `Session ${sessionId} was given to another worker.`);
