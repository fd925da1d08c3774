import type { LimitReached } from "../loop/run.ts";
import type { Registry } from "../tasks/registry.ts";
import type { TaskRecord } from "../tasks/task-record.ts";

/** Why another model call of this agent would be too much for it, or for any of those above it. */
export function agentLimit(task: TaskRecord, registry: Registry): LimitReached | undefined {
  for (
    let one: TaskRecord | undefined = task;
    one;
    one = one.parentId === undefined ? undefined : registry.get(one.parentId)
  ) {
    const reached = limitOf(one, registry);
    if (reached) return reached;
  }
  return undefined;
}

function limitOf(task: TaskRecord, registry: Registry): LimitReached | undefined {
  const { limits } = task.spec;
  if (!limits) return undefined;
  const { calls, inputTokens, outputTokens, costUsd } = registry.usage(task.id);
  const used = { turns: calls, tokens: inputTokens + outputTokens, cost: costUsd ?? Number.POSITIVE_INFINITY };
  const allowed = { turns: limits.turns, tokens: limits.tokens, cost: limits.costUsd };
  for (const limit of ["turns", "tokens", "cost"] as const) {
    const most = allowed[limit];
    if (most === undefined || used[limit] < most) continue;
    const message = `Agent ${task.id} has used its share: ${used[limit]} of ${most} ${limit === "cost" ? "dollars" : limit}.`;
    return { limit, allowed: most, used: used[limit], message };
  }
  return undefined;
}
