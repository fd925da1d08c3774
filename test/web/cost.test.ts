/** The cost view: rows add up, and charts have every call. */
import { expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { SessionView } from "../../src/view/session-view.ts";
import type { Usage } from "../../src/view/usage.ts";
import { seriesOf } from "../../src/web/page/views/cost-series.ts";
import { agentRows } from "../../src/web/page/views/cost-sums.ts";

const usage = (index: number, more: Partial<Usage> = {}): Usage => ({
  ...{ agentId: `agent-${index % 9}`, model: index % 2 === 0 ? "a" : "b", at: 1_700_000_000_000 + index * 3_600_000 },
  ...{ inputTokens: 100, outputTokens: 10, cacheReadTokens: 25, cacheWriteTokens: 0, costUsd: 0.01, durationMs: 500 },
  requests: 1,
  ...more,
});
const usages = Array.from({ length: 48 }, (_, index) => usage(index));
const lastOf = (values: readonly (number | null)[]): number => values.findLast((value) => value !== null) ?? 0;

it.each(["all", "agent", "model"] as const)("the cost lines per %s add up to the total", (by) => {
  const sum = (measure: "tokens" | "cost"): number =>
    seriesOf(usages, measure, by).lines.reduce((whole, { values }) => whole + lastOf(values), 0);
  expect(sum("tokens")).toBe(48 * 110);
  expect(sum("cost")).toBeCloseTo(0.48, 10);
});

it("the cost chart gives six agents a line of their own and the others one together", () => {
  const { lines, times } = seriesOf(usages, "tokens", "agent");
  expect(lines.map(({ name }) => name)).toContain("others");
  expect(lines).toHaveLength(7);
  expect(times).toHaveLength(48);
});

it("the cost page shows sums, the median time and the share of cached tokens per day", () => {
  const of = (measure: Parameters<typeof seriesOf>[1]) => seriesOf(usages, measure, "day");
  expect(of("tokens").times).toHaveLength(3);
  expect(of("tokens").lines[0]?.values.reduce((sum: number, value) => sum + (value ?? 0), 0)).toBe(48 * 110);
  expect(of("latency").lines[0]?.values).toEqual([0.5, 0.5, 0.5]);
  expect(of("cache hits").lines[0]?.values).toEqual([25, 25, 25]);
});

it("the rows of agents add up to the cent, with children and with agents that the view has dropped", () => {
  const fold = new SessionView();
  const task = (taskId: string, parentId: string | undefined, index: number): void => {
    const about = { taskId, toolCallId: `c${index}`, kind: "agent", agentName: "task", agentDisplayName: "Task" };
    const more = { description: "", prompt: "", mode: "background", depth: 1, multiTurn: true, tools: null };
    const event = { id: `e${index}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: null };
    const data = { ...about, ...more, ...(parentId !== undefined && { parentId }) };
    fold.apply({ ...event, type: "troupe.task_created", data } as unknown as SessionEvent);
  };
  task("agent-1", undefined, 1);
  task("agent-2", "agent-1", 2);
  const calls = ["", "agent-1", "agent-2", "agent-2", "dropped"].map((agentId, index) =>
    usage(index, { agentId, costUsd: 0.1 + index / 1_000_000 }),
  );
  const rows = agentRows(fold.view, calls);
  expect(rows.map(([name, , depth]) => [name, depth])).toEqual([
    ["main agent", 0],
    ["agent-1", 1],
    ["agent-2", 2],
    ["earlier agents", 1],
  ]);
  const whole = rows.reduce((sum, [, { cost }]) => sum + (cost ?? 0), 0);
  expect(rows[0]?.[3]?.cost).toBeCloseTo(whole, 10);
  expect(rows[1]?.[3]?.cost).toBeCloseTo(0.300006, 10);
});
