/** Tokens and costs of agents: per agent, and per agent with all its descendants. */
import type { EventData } from "../protocol/event.ts";
import { type AgentDraft, NOTHING_SPENT, type ViewDraft } from "./draft.ts";
import type { Spent } from "./view.ts";

export function addUsage(view: ViewDraft, agent: AgentDraft, data: EventData<"troupe.usage">): void {
  const { inputTokens, outputTokens, cacheReadTokens, costUsd, attempts } = data;
  spend(view, agent, {
    inputTokens,
    outputTokens,
    cacheReadTokens,
    requests: attempts,
    ...(costUsd === null ? { isCostKnown: false } : { costUsd }),
  });
}

/** Adds to the agent, and to the subtrees of all agents above it. */
export function spend(view: ViewDraft, agent: AgentDraft, used: Partial<Spent>): void {
  agent.spent = addSpent(agent.spent, used);
  agent.subtree = addSpent(agent.subtree, used);
  if (agent === view.main) return;
  const seen = new Set([agent]);
  for (
    let one = view.agents.get(agent.parentId ?? "");
    one && !seen.has(one);
    one = view.agents.get(one.parentId ?? "")
  ) {
    seen.add(one);
    one.subtree = addSpent(one.subtree, used);
  }
  view.main.subtree = addSpent(view.main.subtree, used);
}

function addSpent(a: Spent, used: Partial<Spent>): Spent {
  const b = { ...NOTHING_SPENT, ...used };
  return {
    tools: a.tools + b.tools,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    costUsd: a.costUsd + b.costUsd,
    isCostKnown: a.isCostKnown && b.isCostKnown,
    requests: a.requests + b.requests,
  };
}
