import type { SessionEvent } from "../../protocol/event.ts";

export interface AgentUsage {
  readonly id: string;
  readonly turns: number;
  readonly tokens: number;
  /** Null if a price is unknown. */
  readonly costUsd: number | null;
}

/** Totals since this process opened the session, shown at the end of prompt mode. */
export class RunTotals {
  readonly #agents = new Map<string, AgentUsage>();
  #proposals = 0;

  /** The usage of each subagent, in the order of their first calls. */
  get agents(): readonly AgentUsage[] {
    return [...this.#agents.values()];
  }

  /** The number of facts proposed as memories. */
  get proposals(): number {
    return this.#proposals;
  }

  apply(event: SessionEvent): void {
    if (event.type === "session.info" && event.data.infoType === "memory") this.#proposals++;
    if (event.type !== "troupe.usage" || event.agentId === undefined) return;
    const { inputTokens, outputTokens, costUsd } = event.data;
    const { agentId: id } = event;
    const before = this.#agents.get(id) ?? { id, turns: 0, tokens: 0, costUsd: 0 };
    this.#agents.set(id, {
      id,
      turns: before.turns + 1,
      tokens: before.tokens + inputTokens + outputTokens,
      costUsd: before.costUsd === null || costUsd === null ? null : before.costUsd + costUsd,
    });
  }
}
