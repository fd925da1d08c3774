/** Tokens, cost, latency and cache hits per agent, model and day; and what the same run would cost on another model. */
import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { sanitise } from "../../../lib/text.ts";
import { addCosts, costOf } from "../../../model/prices.ts";
import { type Usage, usagesOf } from "../../../view/usage.ts";
import type { ModelPrice } from "../../api.ts";
import { count, duration, exactMoney, tokens } from "../format.ts";
import { TableBox } from "../parts/labels.tsx";
import { call } from "../server.ts";
import { attempt, isExported } from "../state.ts";
import { type Grouping, type Measure, seriesOf } from "./cost-series.ts";
import { agentRows, type CostRow, groups } from "./cost-sums.ts";
import { TabBody, type TabProps } from "./lazy.tsx";

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

const price = (cost: number | null): string => (cost === null ? "unknown" : exactMoney(cost));

function SumTable({ title, rows }: { readonly title: string; readonly rows: readonly CostRow[] }): JSX.Element {
  const hasSubtrees = rows.some(([, , , subtree]) => subtree !== undefined);
  return (
    <section>
      <h2>{title}</h2>
      <TableBox label={title}>
        <thead>
          <tr>
            <th class="words">{title.replace("By ", "")}</th>
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
              <td class="words" style={{ paddingLeft: `${12 + depth * 14}px` }}>
                {sanitise(name)}
              </td>
              <td>{count(sum.calls)}</td>
              <td>{tokens(sum.input)}</td>
              <td>{sum.input === 0 ? "–" : `${Math.round((100 * sum.cached) / sum.input)} %`}</td>
              <td>{tokens(sum.output)}</td>
              <td>{sum.calls === 0 ? "–" : duration(sum.medianMs)}</td>
              <td>{sum.calls === 0 ? "–" : price(sum.cost)}</td>
              {hasSubtrees && <td>{subtree?.calls === 0 ? "–" : price(subtree?.cost ?? null)}</td>}
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
  const paid = addCosts(usages.map(({ costUsd }) => costUsd));
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
      <p class="hint">
        {rows.length === 0
          ? "No model with a known price. Prices are in providers.json of the state folder."
          : "The recorded tokens at list prices. Another model would need other tokens: it is an estimate."}
      </p>
      {rows.length > 0 && <OtherModels rows={rows} paid={paid} />}
    </section>
  );
}

interface OtherModelsProps {
  readonly rows: readonly { readonly ref: string; readonly cost: number }[];
  /** The recorded cost; null if it is not known. */
  readonly paid: number | null;
}

function OtherModels({ rows, paid }: OtherModelsProps): JSX.Element {
  return (
    <TableBox label="The same run on another model">
      <thead>
        <tr>
          <th class="words">model</th>
          <th>cost</th>
          <th>compared</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ ref, cost }) => (
          <tr key={ref}>
            <td class="words">{sanitise(ref)}</td>
            <td>{exactMoney(cost)}</td>
            <td>{paid ? `${Math.round((100 * cost) / paid)} %` : "–"}</td>
          </tr>
        ))}
      </tbody>
    </TableBox>
  );
}

const measures: readonly Measure[] = ["tokens", "cost", "latency", "cache hits"];
const groupings: readonly Grouping[] = ["all", "agent", "model", "day"];

/** One measure over time. */
function Chart({ usages }: { readonly usages: readonly Usage[] }): JSX.Element {
  const chart = useRef<HTMLDivElement>(null);
  const measure = useSignal<Measure>("tokens");
  const by = useSignal<Grouping>("agent");
  const series = useMemo(() => seriesOf(usages, measure.value, by.value), [usages, measure.value, by.value]);
  useEffect(() => {
    const element = chart.current;
    if (!element || usages.length === 0) return undefined;
    let isGone = false;
    let remove = (): void => undefined;
    void import("../parts/chart.ts").then(({ drawChart }) => {
      if (!isGone) remove = drawChart(element, series, measure.value);
    });
    return () => {
      isGone = true;
      remove();
    };
  }, [series]);
  if (usages.length === 0) return <p class="hint">No model was called yet.</p>;
  return (
    <section class="chart-box">
      <div class="choices">
        <Choice label="Measure" options={measures} chosen={measure} />
        <Choice label="Per" options={groupings} chosen={by} />
      </div>
      <div
        class="chart"
        ref={chart}
        role="img"
        aria-label={`${measure.value} over time; the tables below have the numbers`}
      />
      <p class="legend">
        {series.lines.map(({ name }, index) => (
          <span key={name} class={`key chart-${index + 1}`}>
            {sanitise(name)}
          </span>
        ))}
      </p>
    </section>
  );
}

interface ChoiceProps<T> {
  readonly label: string;
  readonly options: readonly T[];
  readonly chosen: Signal<T>;
}

/** One of a few, as buttons side by side. */
function Choice<T extends string>({ label, options, chosen }: ChoiceProps<T>): JSX.Element {
  return (
    <fieldset class="segments" aria-label={label}>
      {options.map((option) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === chosen.value}
          onClick={() => {
            chosen.value = option;
          }}
        >
          {option}
        </button>
      ))}
    </fieldset>
  );
}
