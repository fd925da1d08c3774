/** The chart of tokens and cost. In a chunk of its own, with uPlot. */
import UPlot from "uplot";
import type { Usage } from "../../../view/usage.ts";

const HEIGHT = 200;

/** Returns a function that removes it. */
export function drawChart(place: HTMLElement, usages: readonly Usage[]): () => void {
  const style = getComputedStyle(place);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  let cost = 0;
  const costs = usages.map(({ costUsd }) => {
    cost += costUsd ?? 0;
    return cost;
  });
  const axis = {
    stroke: colour("muted"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line") },
  };
  const chart = new UPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      axes: [
        axis,
        { ...axis, label: "tokens" },
        { ...axis, side: 1, scale: "usd", label: "cost ($)", grid: { show: false } },
      ],
      series: [
        {},
        { label: "tokens in", stroke: colour("lane-model"), width: 1.5 },
        { label: "tokens out", stroke: colour("lane-tool"), width: 1.5 },
        { label: "cost", stroke: colour("lane-wait"), width: 2, scale: "usd" },
      ],
    },
    [
      usages.map(({ at }) => at / 1_000),
      usages.map(({ inputTokens }) => inputTokens),
      usages.map(({ outputTokens }) => outputTokens),
      costs,
    ],
    place,
  );
  const observer = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT }));
  observer.observe(place);
  return () => {
    observer.disconnect();
    chart.destroy();
  };
}
