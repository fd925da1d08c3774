/**
 * Lets a session act only while this worker has it. A worker that was frozen or cut off may have been replaced:
 *
 * - An action that starts after the lease has lapsed asks the database whether the claim is still valid.
 * - An action that runs when the lease expires is stopped. The thread of the lease kills its commands.
 *
 * All tools (built-in ones, those of MCP servers, programs and extensions), hooks and starts of commands are actions.
 */

import { isClaimed } from "../../engine/dbos-engine.ts";
import type { Claim } from "../../engine/engine.ts";
import type { Lease } from "../../engine/lease.ts";
import type { EffectGuard, Guarded } from "../../lib/effect-guard.ts";
import type { Queries } from "../../lib/queries.ts";
import { ToolError } from "../../tools/tool-error.ts";

export interface LeaseGuardOptions {
  readonly lease: Pick<Lease, "isValid" | "lapses" | "expired" | "renew">;
  readonly queries: Queries;
  /** Reports actions that were refused or stopped, one line each. */
  report(line: string): void;
}

export class LeaseGuard {
  readonly #options: LeaseGuardOptions;

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
  }

  /** Returns the guard of an activation, which begins with a valid claim. */
  of(claim: Claim): EffectGuard {
    const activity = { claim, lapses: this.#options.lease.lapses };
    return {
      run: async (what, signal, action) => {
        await this.#check(what, activity);
        return what.waits ? action(signal) : this.#whileValid(what, signal, action);
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

  async #check({ name }: Guarded, activity: Activity): Promise<void> {
    if (this.#isValidFor(activity)) return;
    const { lease, queries } = this.#options;
    try {
      await lease.renew();
      const { lapses } = lease;
      if (await isClaimed(queries, activity.claim)) activity.lapses = lapses;
    } catch {
      // The database cannot be reached, so nothing is known.
    }
    if (!this.#isValidFor(activity)) throw this.#refusal(`a call of ${name}`);
  }

  #refusal(what: string): ToolError {
    this.#options.report(`refused ${what}: another worker may have its session`);
    return new ToolError("This worker has lost its lease, so it starts nothing more.");
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

interface Activity {
  readonly claim: Claim;
  /** Lapses of the lease for which the claim is known to be valid. */
  lapses: number;
}
