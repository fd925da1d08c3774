/**
 * Keeps every agent's conversation within its model's window. At 0.80 of it a summary is written while the agent goes
 * on; at 0.95 the agent waits for one; a provider that finds a request too long gets a shorter one. A summary that fails
 * costs nothing: it is tried again later, and until then requests leave out old results, saying so.
 */
import type { WriteCheckpoint } from "../../context/compact-checkpoint.ts";
import type { Standing } from "../../context/compact-summary.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Conversation } from "../conversation.ts";
import { AgentContext, type CompactionPlace, type ContextState, freshState } from "./agent-context.ts";
import type { CompactionDesk } from "./compaction-call.ts";
import { type CompactionOptions, DEFAULT_COMPACTION } from "./compaction-options.ts";
import { Meter } from "./context-usage.ts";

interface CompactionsParts {
  readonly options?: CompactionOptions;
  /** The log so far: checkpoints are numbered through. */
  readonly events: readonly SessionEvent[];
  readonly writeCheckpoint?: WriteCheckpoint;
  /** What stands beside the summary of the agent with this cache key: todos, agents, the plan. */
  readonly standing?: (cacheKey: string) => Promise<Standing>;
}

/** The compactions of all agents of one session. */
export class Compactions {
  readonly meter = new Meter();
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

  of(place: CompactionPlace): AgentContext {
    const known = this.#states.get(place.history.conversation);
    const state = known ?? freshState();
    this.#states.set(place.history.conversation, state);
    return new AgentContext({ place, state, options: this.options, desk: this.#desk(), running: this.#running });
  }

  /** What was known of the conversations does not hold any more; what is under way is given up. */
  async reset(): Promise<void> {
    await this.close();
    this.#states = new WeakMap();
  }

  /** Ends what is under way; nothing of it is kept. */
  async close(): Promise<void> {
    for (const { abort } of this.#running) abort.abort();
    await Promise.allSettled([...this.#running].map(({ end }) => end));
  }

  #desk(): CompactionDesk {
    const { writeCheckpoint, standing } = this.#parts;
    return {
      meter: this.meter,
      nextCheckpoint: () => ++this.#checkpoints,
      writeCheckpoint,
      standing: async (cacheKey) => (await standing?.(cacheKey)) ?? {},
    };
  }
}
