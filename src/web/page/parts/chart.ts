/** The chart of the cost view. In a chunk of its own, with uPlot. */
import UPlot from "uplot";
import { clock } from "../format.ts";
import type { Measure, Series } from "../views/cost-series.ts";

const HEIGHT = 220;

const units: Readonly<Record<Measure, (value: number) => string>> = {
  tokens: (value) => (value >= 1_000 ? `${Math.round(value / 1_000)}k` : String(Math.round(value))),
  cost: (value) => `$${value.toFixed(value < 1 ? 3 : 2)}`,
  latency: (value) => `${value.toFixed(1)} s`,
  "cache hits": (value) => `${Math.round(value)} %`,
};

/** Returns a function that removes it. */
export function drawChart(element: HTMLElement, { times, lines, isDaily }: Series, measure: Measure): () => void {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: colour("muted"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line") },
  };
  const isPoints = measure === "latency" && !isDaily;
  const chart = new UPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      // Room for half of the last label of the time axis.
      padding: [null, 40, null, null],
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] } },
      axes: [
        {
          ...axis,
          space: 80,
          values: (_, marks, __, ___, step) => marks.map((at) => timeText(at, { isDaily, step })),
        },
        { ...axis, size: 64, values: (_, marks) => marks.map(units[measure]) },
      ],
      series: [
        {},
        ...lines.map(({ name }, index) => ({
          label: name,
          stroke: colour(`chart-${index + 1}`),
          width: isPoints ? 0 : 2,
          spanGaps: true,
          points: { show: isPoints || isDaily || times.length < 30, size: 6, fill: colour(`chart-${index + 1}`) },
        })),
      ],
    },
    [[...times], ...lines.map(({ values }) => [...values])],
    element,
  );
  const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
  observer.observe(element);
  return () => {
    observer.disconnect();
    chart.destroy();
  };
}

/** `step`: seconds between two marks. */
function timeText(seconds: number, { isDaily, step }: { readonly isDaily: boolean; readonly step: number }): string {
  const at = Math.round(seconds * 1_000);
  return isDaily ? new Date(at).toISOString().slice(5, 10) : clock(at, step >= 1 ? 0 : step >= 0.1 ? 1 : 3);
}
