/**
 * Keeps every agent's conversation within its model's context window.
 *
 * By default a summary is written in the background at 0.80 of the window, and the agent waits for one at 0.95. If a
 * provider rejects a request as too long, a shorter one is sent. A failed summary is retried later; until then requests
 * leave out old results and say so.
 * This folder also measures contexts and condenses the log for snapshots.
 */

import type { CarriedState } from "../../context/compact-summary.ts";
import type { WriteSummary } from "../../context/compaction-summary.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Conversation } from "../conversation.ts";
import { AgentContext, type CompactionRun, type ContextState, freshState } from "./agent-context.ts";
import type { CompactionServices } from "./compaction-call.ts";
import { type CompactionOptions, DEFAULT_COMPACTION } from "./compaction-options.ts";
import { ContextMeter } from "./context-usage.ts";

interface CompactionsParts {
  readonly options?: CompactionOptions;
  /** The log so far. Checkpoint numbers continue from it. */
  readonly events: readonly SessionEvent[];
  readonly writeSummary?: WriteSummary;
  /** Returns the state that accompanies the summary of the agent with this cache key: todos, agents, the plan. */
  readonly carriedState?: (cacheKey: string) => Promise<CarriedState>;
}

/** The compactions of all agents of one session. */
export class Compactions {
  readonly meter = new ContextMeter();
  readonly options: CompactionOptions;
  readonly #parts: CompactionsParts;
  #states = new WeakMap<Conversation, ContextState>();
  readonly #running = new Set<NonNullable<ContextState["running"]>>();
  #checkpoints: number;

  constructor(parts: CompactionsParts) {
    this.#parts = parts;
    this.options = parts.options ?? DEFAULT_COMPACTION;
    this.#checkpoints = parts.events.reduce(
      (most, event) =>
        event.type === "session.compaction_complete" ? Math.max(most, event.data.checkpointNumber ?? 0) : most,
      0,
    );
  }

  of(run: CompactionRun): AgentContext {
    const known = this.#states.get(run.history.conversation);
    const state = known ?? freshState();
    this.#states.set(run.history.conversation, state);
    return new AgentContext({
      run,
      state,
      options: this.options,
      services: this.#services(),
      running: this.#running,
    });
  }

  /** Cancels running compactions and clears the state of all conversations. */
  async reset(): Promise<void> {
    await this.close();
    this.#states = new WeakMap();
  }

  /** Cancels running compactions and discards their results. */
  async close(): Promise<void> {
    for (const { abort } of this.#running) abort.abort();
    await Promise.allSettled([...this.#running].map(({ end }) => end));
  }

  #services(): CompactionServices {
    const { writeSummary, carriedState } = this.#parts;
    return {
      meter: this.meter,
      nextCheckpoint: () => ++this.#checkpoints,
      writeSummary,
      carriedState: async (cacheKey) => (await carriedState?.(cacheKey)) ?? {},
    };
  }
}
