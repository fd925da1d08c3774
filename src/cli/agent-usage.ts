import { plural } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";

export interface AgentUsage {
  readonly id: string;
  readonly turns: number;
  readonly tokens: number;
  /** Null when a price is unknown. */
  readonly costUsd: number | null;
}

/** What each agent beside the main one used, in the order they began. */
export function agentUsage(events: readonly SessionEvent[]): readonly AgentUsage[] {
  const used = new Map<string, AgentUsage>();
  for (const event of events) {
    if (event.type !== "troupe.usage" || event.agentId === undefined) continue;
    const { inputTokens, outputTokens, costUsd } = event.data;
    const { agentId: id } = event;
    const before = used.get(id) ?? { id, turns: 0, tokens: 0, costUsd: 0 };
    used.set(id, {
      id,
      turns: before.turns + 1,
      tokens: before.tokens + inputTokens + outputTokens,
      costUsd: before.costUsd === null || costUsd === null ? null : before.costUsd + costUsd,
    });
  }
  return [...used.values()];
}

const MAX_NAMED = 6;

/** `2 agents: scout 2, helper 1`; those that did most come first where not all can be named. */
export function turnsText(agents: readonly AgentUsage[]): string {
  return `${plural(agents.length, "agent")}: ${named(agents, ({ turns }) => String(turns))}`;
}

/** What each of them cost, where that is known and not nothing. */
export function costText(agents: readonly AgentUsage[]): string {
  const paid = agents.filter(({ costUsd }) => costUsd !== null && costUsd > 0);
  return named(paid, ({ costUsd }) => `$${(costUsd ?? 0).toFixed(4)}`);
}

function named(agents: readonly AgentUsage[], text: (agent: AgentUsage) => string): string {
  const most = agents.length <= MAX_NAMED ? agents : [...agents].sort((a, b) => b.turns - a.turns).slice(0, MAX_NAMED);
  const names = most.map((agent) => `${agent.id} ${text(agent)}`).join(", ");
  return agents.length > MAX_NAMED ? `${names} and ${agents.length - MAX_NAMED} more` : names;
}
