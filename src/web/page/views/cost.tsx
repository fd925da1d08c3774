/** Tokens, cost, latency and cache hits per agent, model and day; and what the same run would cost on another model. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import { addCosts, costOf } from "../../../model/prices.ts";
import { type Usage, usagesOf } from "../../../view/usage.ts";
import type { View } from "../../../view/view.ts";
import type { ModelPrice } from "../../api.ts";
import { count, duration, exactMoney, tokens } from "../format.ts";
import { treeEntries } from "../parts/agent-tree.tsx";
import { TableBox } from "../parts/labels.tsx";
import { call } from "../server.ts";
import { attempt, isExported } from "../state.ts";
import { TabBody, type TabProps } from "./lazy.tsx";

interface Sum {
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cost: number | null;
  readonly medianMs: number;
}

export function CostTab({ model }: TabProps): JSX.Element {
  const { view } = model;
  const shown = model.position.value ?? model.length;
  const usages = useMemo(() => usagesOf(model.events.slice(0, shown)), [model, shown, model.revision.value]);
  return (
    <TabBody label="Cost">
      <Chart usages={usages} />
      <SumTable title="By agent" rows={agentRows(view, usages)} />
      <SumTable title="By model" rows={groups(usages, ({ model: name }) => name)} />
      <SumTable title="By day" rows={groups(usages, ({ at }) => new Date(at).toISOString().slice(0, 10))} />
      {!isExported.value && <OtherModel usages={usages} />}
    </TabBody>
  );
}

type Row = readonly [name: string, sum: Sum, depth: number, subtree: Sum | undefined];

function agentRows(view: View, usages: readonly Usage[]): Row[] {
  const own = (id: string): Usage[] => usages.filter(({ agentId }) => agentId === id);
  const below = (id: string): Usage[] => [
    ...own(id),
    ...[...view.agents.values()].filter(({ parentId = "" }) => parentId === id).flatMap((child) => below(child.id)),
  ];
  return treeEntries(view).flatMap(({ agent, depth }): Row[] => {
    if (!agent) return [];
    const name = agent.kind === "main" ? "main agent" : agent.id;
    return [[name, sumOf(own(agent.id)), depth, sumOf(below(agent.id))]];
  });
}

function groups(usages: readonly Usage[], keyOf: (usage: Usage) => string): Row[] {
  const found = new Map<string, Usage[]>();
  for (const usage of usages) found.set(keyOf(usage), [...(found.get(keyOf(usage)) ?? []), usage]);
  return [...found].map(([name, own]): Row => [name, sumOf(own), 0, undefined]);
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

const price = (cost: number | null): string => (cost === null ? "unknown" : exactMoney(cost));

function SumTable({ title, rows }: { readonly title: string; readonly rows: readonly Row[] }): JSX.Element {
  const hasSubtrees = rows.some(([, , , subtree]) => subtree !== undefined);
  return (
    <section>
      <h2>{title}</h2>
      <TableBox label={title}>
        <thead>
          <tr>
            <th>{title.replace("By ", "")}</th>
            <th>model calls</th>
            <th>tokens in</th>
            <th>cached</th>
            <th>tokens out</th>
            <th>median call</th>
            <th>cost</th>
            {hasSubtrees && <th>with its agents</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, sum, depth, subtree], index) => (
            <tr key={index}>
              <td style={{ paddingLeft: `${10 + depth * 14}px` }}>{sanitise(name)}</td>
              <td>{count(sum.calls)}</td>
              <td>{tokens(sum.input)}</td>
              <td>{sum.input === 0 ? "–" : `${Math.round((100 * sum.cached) / sum.input)} %`}</td>
              <td>{tokens(sum.output)}</td>
              <td>{sum.calls === 0 ? "–" : duration(sum.medianMs)}</td>
              <td>{price(sum.cost)}</td>
              {hasSubtrees && <td>{price(subtree?.cost ?? null)}</td>}
            </tr>
          ))}
        </tbody>
      </TableBox>
    </section>
  );
}

/** The same tokens at other prices. Another model would write other words: it is an estimate. */
function OtherModel({ usages }: { readonly usages: readonly Usage[] }): JSX.Element {
  const prices = useSignal<readonly ModelPrice[]>([]);
  useEffect(() => {
    void attempt(call<readonly ModelPrice[]>("web.prices")).then((found) => {
      prices.value = found ?? [];
    });
  }, []);
  const rows = prices.value
    .map(({ ref, price: one }) => ({
      ref,
      cost: addCosts(usages.map((usage) => costOf({ ...usage, reasoningTokens: 0 }, one))),
    }))
    .filter((row): row is { ref: string; cost: number } => row.cost !== null)
    .sort((one, other) => one.cost - other.cost);
  return (
    <section>
      <h2>The same run on another model</h2>
      <p class="hint">The recorded tokens at list prices. Another model would need other tokens: it is an estimate.</p>
      <TableBox label="The same run on another model">
        <thead>
          <tr>
            <th>model</th>
            <th>cost</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ ref, cost }) => (
            <tr key={ref}>
              <td>{sanitise(ref)}</td>
              <td>{exactMoney(cost)}</td>
            </tr>
          ))}
        </tbody>
      </TableBox>
    </section>
  );
}

/** Tokens of the calls and the sum of their costs over time. */
function Chart({ usages }: { readonly usages: readonly Usage[] }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element || usages.length === 0) return undefined;
    let isGone = false;
    let remove = (): void => undefined;
    void import("../parts/chart.ts").then(({ drawChart }) => {
      if (!isGone) remove = drawChart(element, usages);
    });
    return () => {
      isGone = true;
      remove();
    };
  }, [usages]);
  if (usages.length === 0) return <p class="hint">No model was called yet.</p>;
  return (
    <div
      class="chart"
      ref={place}
      role="img"
      aria-label="Tokens and cost over time; the tables below have the numbers"
    />
  );
}
