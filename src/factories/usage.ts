import type { FactoriesPorts } from "./ports.ts";
import type { RunRecord } from "./run-fold.ts";

/** The value of one AI credit. */
export const USD_PER_CREDIT = 0.01;
const NANO = 1_000_000_000;

/** Returns the credits used by a run's agents and their subagents, or null if a price is unknown. */
export function creditsOf({ agents }: RunRecord, { agentState }: Pick<FactoriesPorts, "agentState">): number | null {
  let dollars = 0;
  for (const { agentId } of agents) {
    const cost = agentState(agentId)?.costUsd;
    if (cost === null) return null;
    dollars += cost ?? 0;
  }
  return dollars / USD_PER_CREDIT;
}

/** Returns the same amount in nano credits, the wire's unit. Unknown costs count as zero. */
export function nanoOf({ agents }: RunRecord, { agentState }: Pick<FactoriesPorts, "agentState">): number {
  const dollars = agents.reduce((sum, { agentId }) => sum + (agentState(agentId)?.costUsd ?? 0), 0);
  return Math.round((dollars / USD_PER_CREDIT) * NANO);
}
