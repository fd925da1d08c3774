/** The lines of the cost view's chart: a measure over time per agent or model, or per day. */
import type { Usage } from "../../../view/usage.ts";

export type Measure = "tokens" | "cost" | "latency" | "cache hits";
export type Grouping = "all" | "agent" | "model" | "day";

interface Line {
  readonly name: string;
  /** One for each time; null where the line has none. */
  readonly values: readonly (number | null)[];
}

export interface Series {
  /** In seconds, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly isDaily: boolean;
}

/** Groups with a line of their own. The others share one. */
const MAX_LINES = 6;
const DAY_MS = 86_400_000;

export function seriesOf(usages: readonly Usage[], measure: Measure, by: Grouping): Series {
  if (by === "day") return daily(usages, measure);
  const nameOf = namesOf(usages, by);
  const names = [...new Set(usages.map(nameOf))];
  return {
    times: usages.map(({ at }) => at / 1_000),
    lines: names.map((name) => {
      const sum = new Sum();
      return {
        name,
        values: usages.map((usage) => {
          if (nameOf(usage) !== name) return null;
          sum.add(usage);
          return measure === "latency" ? usage.durationMs / 1_000 : sum.of(measure);
        }),
      };
    }),
    isDaily: false,
  };
}

/** The name of the line that a call belongs to. */
function namesOf(usages: readonly Usage[], by: "all" | "agent" | "model"): (usage: Usage) => string {
  const keyOf = ({ agentId, model }: Usage): string => {
    if (by === "all") return "all";
    return by === "model" ? model : agentId === "" ? "main agent" : agentId;
  };
  const counts = new Map<string, number>();
  for (const usage of usages) counts.set(keyOf(usage), (counts.get(keyOf(usage)) ?? 0) + 1);
  const most = [...counts].sort(([, one], [, other]) => other - one).slice(0, MAX_LINES);
  const own = new Set(most.map(([name]) => name));
  return (usage) => (own.has(keyOf(usage)) ? keyOf(usage) : "others");
}

function daily(usages: readonly Usage[], measure: Measure): Series {
  const days = new Map<number, Usage[]>();
  for (const usage of usages) {
    const day = Math.floor(usage.at / DAY_MS);
    days.set(day, [...(days.get(day) ?? []), usage]);
  }
  const sorted = [...days].sort(([one], [other]) => one - other);
  const values = sorted.map(([, own]) => {
    const sum = new Sum();
    for (const usage of own) sum.add(usage);
    if (measure !== "latency") return sum.of(measure);
    const times = own.map(({ durationMs }) => durationMs / 1_000).sort((one, other) => one - other);
    return times[Math.floor(times.length / 2)] ?? 0;
  });
  return { times: sorted.map(([day]) => (day * DAY_MS) / 1_000), lines: [{ name: "per day", values }], isDaily: true };
}

class Sum {
  #input = 0;
  #output = 0;
  #cached = 0;
  #cost = 0;

  add({ inputTokens, outputTokens, cacheReadTokens, costUsd }: Usage): void {
    this.#input += inputTokens;
    this.#output += outputTokens;
    this.#cached += cacheReadTokens;
    this.#cost += costUsd ?? 0;
  }

  of(measure: Exclude<Measure, "latency">): number {
    if (measure === "cost") return this.#cost;
    if (measure === "tokens") return this.#input + this.#output;
    return this.#input === 0 ? 0 : (100 * this.#cached) / this.#input;
  }
}
