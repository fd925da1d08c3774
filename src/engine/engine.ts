/**
 * Distributes work among machines. One piece of work is one activation of a session: take it, work until it is idle,
 * release it. The engine moves work; the session's log is the state. This folder has the port, an engine on DBOS and
 * Postgres, and the lease that shows which workers are alive.
 */

import type { Condition } from "../lib/queries.ts";

export interface Work {
  /** Submitting the same id twice is the same as submitting it once. */
  readonly id: string;
  readonly sessionId: string;
  /** Workers of this pool take it. */
  readonly pool: string;
  /** Tenants share the slots of a pool evenly (default: `default`). */
  readonly tenant?: string;
}

/** The right to work on a session, held by one worker at a time: a condition that is true while it is valid. */
export interface Claim extends Condition {
  readonly workId: string;
}

export type WorkState = "queued" | "running" | "done" | "failed" | "cancelled" | "set_aside";

export interface WorkView extends Work {
  readonly state: WorkState;
  /** The worker that runs it or ran it last. */
  readonly worker?: string;
  /** How often a worker has begun it. */
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly error?: string;
}

export interface WorkQuery {
  readonly sessionId?: string;
  readonly states?: readonly WorkState[];
  /** Default: 1,000. */
  readonly limit?: number;
}

/**
 * Runs one activation. May run again for the same work, on any worker, after the one before was lost. Must return
 * without effect if the session's log shows that the work is done.
 */
export type RunActivation = (work: Work, claim: Claim) => Promise<void>;

export interface Engine {
  submit(work: Work): Promise<void>;
  /** Takes work of the given pool until `stop`. At most one activation of a session runs at a time, in any worker. */
  serve(run: RunActivation): Promise<EngineWorker>;
  cancel(workId: string): Promise<void>;
  /** Runs work again that has ended or was set aside. */
  retry(work: Work): Promise<void>;
  list(query?: WorkQuery): Promise<readonly WorkView[]>;
  close(): Promise<void>;
}

export interface EngineWorker {
  /** Takes no new work until `resume`. Running work continues. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /**
   * Takes no new work and waits for the activations that run, at most `timeoutMs`. Then calls `giveUp`, which ends them. If
   * it returns true, all have ended, and other workers may take their work at once.
   */
  drain(timeoutMs: number, giveUp?: () => Promise<boolean>): Promise<void>;
}

/** Thrown by an activation whose claim was given to another worker. */
export class ClaimLost extends Error {
  constructor(work: Work) {
    super(`Another worker has taken over session ${work.sessionId}.`);
  }
}
