/**
 * Lets tools act only while this worker has the session. A worker that was frozen or cut off may have been replaced:
 *
 * - A call that starts after the lease has lapsed asks the database whether the claim is still valid.
 * - A call that runs when the lease expires is stopped.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { isClaimed } from "../../engine/dbos-engine.ts";
import type { Claim } from "../../engine/engine.ts";
import type { Lease } from "../../engine/lease.ts";
import type { Queries } from "../../lib/queries.ts";
import type { Tool } from "../../tools/tool.ts";
import { ToolError } from "../../tools/tool-error.ts";

interface Activity {
  readonly claim: Claim;
  /** Lapses of the lease for which the claim is known to be valid. */
  lapses: number;
}

export interface LeaseGuardOptions {
  readonly lease: Lease;
  readonly queries: Queries;
  /** Reports calls that were refused or stopped, one line each. */
  report(line: string): void;
}

export class LeaseGuard {
  readonly #options: LeaseGuardOptions;
  readonly #activities = new AsyncLocalStorage<Activity>();

  constructor(options: LeaseGuardOptions) {
    this.#options = options;
  }

  /** Runs an activation. Calls of its tools belong to the claim. */
  run<T>(claim: Claim, work: () => Promise<T>): Promise<T> {
    return this.#activities.run({ claim, lapses: this.#options.lease.lapses }, work);
  }

  guard(tools: readonly Tool[]): readonly Tool[] {
    return tools.map((tool) => ({
      ...tool,
      bind: (rawArguments) => {
        const call = tool.bind(rawArguments);
        return {
          access: (context) => call.access(context),
          run: async (context) => {
            await this.#check(tool.name);
            return this.#whileValid(tool.name, context.signal, (signal) => call.run({ ...context, signal }));
          },
        };
      },
    }));
  }

  async #check(name: string): Promise<void> {
    const { lease } = this.#options;
    const activity = this.#activities.getStore();
    if (lease.isValid && lease.lapses === (activity?.lapses ?? 0)) return;
    try {
      await lease.renew();
      const { lapses } = lease;
      if (activity && (await isClaimed(this.#options.queries, activity.claim))) {
        activity.lapses = lapses;
        return;
      }
    } catch {
      // The database cannot be reached, so nothing is known.
    }
    this.#options.report(`refused a call of ${name}: another worker may have its session`);
    throw new ToolError("This worker has lost its lease, so it starts nothing more.");
  }

  async #whileValid<T>(name: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { expired } = this.#options.lease;
    try {
      return await run(AbortSignal.any([signal, expired]));
    } catch (error) {
      if (!expired.aborted || signal.aborted) throw error;
      this.#options.report(`stopped a call of ${name}: another worker may have its session`);
      throw new ToolError(
        "The call was stopped, because this worker could not reach the database. Check its effects before you repeat it.",
      );
    }
  }
}
