import { plural } from "../../lib/text.ts";
import type { AgentUsage } from "../../session/turn/run-totals.ts";

const MAX_NAMED = 6;

/** Returns `2 agents: scout 2, helper 1`. If not all fit, the most active agents are named. */
export function turnsText(agents: readonly AgentUsage[]): string {
  return `${plural(agents.length, "agent")}: ${textPerAgent(agents, ({ turns }) => String(turns))}`;
}

/** Returns the cost of each agent, if it is known and above zero. */
export function costText(agents: readonly AgentUsage[]): string {
  const paid = agents.filter(({ costUsd }) => costUsd !== null && costUsd > 0);
  return textPerAgent(paid, ({ costUsd }) => `$${(costUsd ?? 0).toFixed(4)}`);
}

function textPerAgent(agents: readonly AgentUsage[], text: (agent: AgentUsage) => string): string {
  const most = agents.length <= MAX_NAMED ? agents : [...agents].sort((a, b) => b.turns - a.turns).slice(0, MAX_NAMED);
  const names = most.map((agent) => `${agent.id} ${text(agent)}`).join(", ");
  return agents.length > MAX_NAMED ? `${names} and ${agents.length - MAX_NAMED} more` : names;
}
