/** The rows of the cost view's tables. */
import { addCosts } from "../../../model/prices.ts";
import type { Usage } from "../../../view/usage.ts";
import type { View } from "../../../view/view.ts";

interface Sum {
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cost: number | null;
  readonly medianMs: number;
}

export type CostRow = readonly [name: string, sum: Sum, depth: number, subtree: Sum | undefined];

/** All agents, children below their parents. Every call is in one row, so the rows add up to the first one's subtree. */
export function agentRows(view: Pick<View, "agents">, usages: readonly Usage[]): CostRow[] {
  const own = new Map<string, Usage[]>();
  for (const usage of usages) {
    const id = usage.agentId === "" || view.agents.has(usage.agentId) ? usage.agentId : GONE;
    own.set(id, [...(own.get(id) ?? []), usage]);
  }
  const children = new Map<string, string[]>();
  for (const { id, parentId = "" } of view.agents.values()) {
    const parent = view.agents.has(parentId) ? parentId : "";
    children.set(parent, [...(children.get(parent) ?? []), id]);
  }
  if (own.has(GONE)) children.set("", [...(children.get("") ?? []), GONE]);
  const rows: CostRow[] = [];
  const walk = (id: string, depth: number): readonly Usage[] => {
    const calls = own.get(id) ?? [];
    const at = rows.push([id === "" ? "main agent" : id, sumOf(calls), depth, undefined]) - 1;
    const all = [...calls, ...(children.get(id) ?? []).flatMap((child) => walk(child, depth + 1))];
    const [name, sum] = rows[at] ?? ["", sumOf(calls)];
    rows[at] = [name, sum, depth, sumOf(all)];
    return all;
  };
  walk("", 0);
  return rows;
}

/** Stands for agents that the view has dropped. */
const GONE = "earlier agents";

export function groups(usages: readonly Usage[], keyOf: (usage: Usage) => string): CostRow[] {
  const found = new Map<string, Usage[]>();
  for (const usage of usages) found.set(keyOf(usage), [...(found.get(keyOf(usage)) ?? []), usage]);
  return [...found].map(([name, own]): CostRow => [name, sumOf(own), 0, undefined]);
}

function sumOf(usages: readonly Usage[]): Sum {
  const add = (value: (usage: Usage) => number): number => usages.reduce((sum, usage) => sum + value(usage), 0);
  const times = usages.map(({ durationMs }) => durationMs).sort((one, other) => one - other);
  return {
    calls: usages.length,
    input: add(({ inputTokens }) => inputTokens),
    output: add(({ outputTokens }) => outputTokens),
    cached: add(({ cacheReadTokens }) => cacheReadTokens),
    cost: addCosts(usages.map(({ costUsd }) => costUsd)),
    medianMs: times[Math.floor(times.length / 2)] ?? 0,
  };
}
