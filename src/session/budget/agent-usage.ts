import type { EventData } from "../../protocol/event.ts";
import type { Registry } from "../../tasks/registry.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import { type Amount, addAmounts, type BudgetAccount, nothing } from "./reservations.ts";

type Spent = Pick<EventData<"troupe.usage">, "inputTokens" | "outputTokens" | "costUsd" | "calls">;

/** The usage of each agent, updated as soon as it is emitted. The registry learns of it only once it is on disk. */
export class AgentUsage {
  readonly #own = new Map<string, Amount>();
  readonly #output = new Map<string, number>();

  apply(agentId: string, { inputTokens, outputTokens, costUsd, calls = 1 }: Spent): void {
    const used = { turns: calls, tokens: inputTokens + outputTokens, costUsd };
    this.#own.set(agentId, addAmounts(this.#own.get(agentId) ?? nothing, used));
    this.#output.set(agentId, (this.#output.get(agentId) ?? 0) + outputTokens);
  }

  /** Returns the usage of the agent itself. */
  own(agentId: string): Amount & { readonly outputTokens: number } {
    return { ...(this.#own.get(agentId) ?? nothing), outputTokens: this.#output.get(agentId) ?? 0 };
  }

  reset(): void {
    this.#own.clear();
    this.#output.clear();
  }

  /** Returns the usage of the agent and its descendants. */
  spent(taskId: string, registry: Pick<Registry, "get">): Amount {
    return this.#sum((line) => line.some(({ id }) => id === taskId), registry);
  }

  /** Returns the usage of a factory run's agents and their descendants. */
  spentByRun(runId: string, registry: Pick<Registry, "get">): Amount {
    return this.#sum((line) => runOf(line) === runId, registry);
  }

  #sum(isMeant: (line: readonly TaskRecord[]) => boolean, registry: Pick<Registry, "get">): Amount {
    let sum = nothing;
    for (const [agentId, used] of this.#own) if (isMeant(lineage(agentId, registry))) sum = addAmounts(sum, used);
    return sum;
  }
}

/** Returns the budgets that apply to an agent, its own first. Usage of its subagents counts against its own budget. */
export function sharesOf(
  task: TaskRecord,
  sources: { registry: Pick<Registry, "get">; ledger: AgentUsage },
): BudgetAccount[] {
  const { registry, ledger } = sources;
  const line = lineage(task.id, registry);
  const shares = line.flatMap(({ id: owner, spec: { limits } }) =>
    limits ? [{ owner, limits, spent: ledger.spent(owner, registry) }] : [],
  );
  const runId = runOf(line);
  if (runId === undefined) return shares;
  const spent = ledger.spentByRun(runId, registry);
  return [...shares, { owner: runId, label: "The run of the factory", limits: FACTORY_LIMITS, spent }];
}

/** The maximum number of model calls of all agents in one factory run. */
const FACTORY_LIMITS = { turns: 5_000 };

/** Returns the factory run that these agents work for. */
const runOf = (line: readonly TaskRecord[]): string | undefined => line.at(-1)?.spec.factoryRunId;

/** Returns the agent and its ancestors, without the main agent. */
function lineage(id: string, registry: Pick<Registry, "get">): TaskRecord[] {
  const line: TaskRecord[] = [];
  for (let one = registry.get(id); one; ) {
    line.push(one);
    one = one.parentId === undefined ? undefined : registry.get(one.parentId);
  }
  return line;
}
