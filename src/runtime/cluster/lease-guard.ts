/**
 * Lets a session act only while this worker has it. A worker that was frozen or cut off may have been replaced:
 *
 * - An action that starts after the lease has lapsed asks the database whether the claim is still valid, and waits while it
 *   gets no answer.
 * - An action that runs when the lease expires is stopped. The thread of the lease kills its commands.
 *
 * All tools (built-in ones, those of MCP servers, programs and extensions), hooks and starts of commands are actions.
 */

import { isClaimed } from "../../engine/dbos-engine.ts";
import type { Claim } from "../../engine/engine.ts";
import type { Lease } from "../../engine/lease.ts";
import { deferred } from "../../lib/deferred.ts";
import type { EffectGuard, Guarded } from "../../lib/effect-guard.ts";
import type { Queries } from "../../lib/queries.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { ToolError } from "../../tools/tool-error.ts";

export interface LeaseGuardOptions {
  readonly lease: Pick<Lease, "isValid" | "lapses" | "expired" | "renew">;
  readonly queries: Queries;
  /** How long an action waits for an unreachable database (default: 60 s). */
  readonly patienceMs?: number;
  /** Reports actions that were refused or stopped, one line each. */
  report(line: string): void;
}

const PATIENCE_MS = 60_000;
const PAUSE_MS = 200;

export class LeaseGuard {
  readonly #options: LeaseGuardOptions;

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
  }

  /** Returns the guard of an activation, which begins with a valid claim. */
  of(claim: Claim): EffectGuard & Pausing {
    const activity: Activity = { claim, lapses: this.#options.lease.lapses, held: undefined };
    return {
      run: async (what, signal, action) => {
        await this.#check(what, activity, signal);
        if (what.isOfWorker) return this.#whileValid(what, signal, action);
        await activity.held;
        try {
          return await (what.waits ? action(signal) : this.#whileValid(what, signal, action));
        } finally {
          await activity.held;
        }
      },
      async pause(work) {
        const { promise, resolve } = deferred<void>();
        activity.held = promise;
        await work().finally(resolve);
      },
      assertValid: () => {
        if (!this.#isValidFor(activity)) throw this.#refusal("a command");
      },
    };
  }

  #isValidFor({ lapses }: Activity): boolean {
    const { lease } = this.#options;
    return lease.isValid && lease.lapses === lapses;
  }

  /** Waits while the database cannot say who has the session: refusing every call would end the work. */
  async #check({ name }: Guarded, activity: Activity, signal: AbortSignal): Promise<void> {
    const { patienceMs = PATIENCE_MS } = this.#options;
    for (const end = performance.now() + patienceMs; !this.#isValidFor(activity); ) {
      const isOwn = await this.#look(activity);
      if (isOwn === false || performance.now() > end) throw this.#refusal(`a call of ${name}`);
      if (isOwn === undefined) await systemStamp.sleep(PAUSE_MS, signal);
    }
  }

  /** Returns whether the claim is valid, or undefined if the database cannot say it or renew the lease. */
  async #look(activity: Activity): Promise<boolean | undefined> {
    const { lease, queries } = this.#options;
    try {
      await lease.renew();
      const { lapses } = lease;
      if (!(await isClaimed(queries, activity.claim))) return false;
      activity.lapses = lapses;
      return this.#isValidFor(activity) || undefined;
    } catch {
      return undefined;
    }
  }

  #refusal(what: string): ToolError {
    this.#options.report(`refused ${what}: another worker may have its session`);
    return new ToolError("Not run: this worker has lost its lease, so it starts no more calls.");
  }

  async #whileValid<T>(
    { name }: Guarded,
    signal: AbortSignal,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { lease } = this.#options;
    const { expired } = lease;
    let ended: { readonly value: T } | { readonly error: unknown };
    try {
      ended = { value: await action(AbortSignal.any([signal, expired])) };
    } catch (error) {
      ended = { error };
    }
    // A command may be killed before the signal is aborted.
    if ((expired.aborted || !lease.isValid) && !signal.aborted) throw this.#stopped(name);
    if ("error" in ended) throw ended.error;
    return ended.value;
  }

  #stopped(name: string): ToolError {
    this.#options.report(`stopped a call of ${name}: another worker may have its session`);
    return new ToolError(
      "The call was stopped, because this worker lost its lease. It may have taken effect: check before you repeat it.",
    );
  }
}

export interface Pausing {
  /** While `work` runs, the session starts no action and gets no result of one. */
  pause(work: () => Promise<void>): Promise<void>;
}

interface Activity {
  readonly claim: Claim;
  /** Resolves when the pause ends. */
  held: Promise<void> | undefined;
  /** Lapses of the lease for which the claim is known to be valid. */
  lapses: number;
}
