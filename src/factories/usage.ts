import type { FactoriesPorts } from "./ports.ts";
import type { RunRecord } from "./run-fold.ts";

/** A credit of the wire. */
export const USD_PER_CREDIT = 0.01;
const NANO = 1_000_000_000;

/** What the agents of a run, and all below them, have used so far; null when a price is not known. */
export function creditsOf({ agents }: RunRecord, { agentState }: Pick<FactoriesPorts, "agentState">): number | null {
  let dollars = 0;
  for (const { agentId } of agents) {
    const cost = agentState(agentId)?.costUsd;
    if (cost === null) return null;
    dollars += cost ?? 0;
  }
  return dollars / USD_PER_CREDIT;
}

/** The same in the unit of the wire, with what is not known left out. */
export function nanoOf({ agents }: RunRecord, { agentState }: Pick<FactoriesPorts, "agentState">): number {
  const dollars = agents.reduce((sum, { agentId }) => sum + (agentState(agentId)?.costUsd ?? 0), 0);
  return Math.round((dollars / USD_PER_CREDIT) * NANO);
}
