/**
 * Counters and histograms, aggregated in the process, so that the cost of an export does not depend on the number of
 * events. Gauges are passed on as they were read.
 */
import { gauges, type Reading } from "./gauges.ts";
import type { Attributes } from "./span.ts";

interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Upper bounds of the buckets. Omitted for counters and gauges. */
  readonly bounds?: readonly number[];
  readonly kind?: "gauge";
}

const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const LONG_SECONDS = [...SECONDS, 163.84, 327.68, 655.36, 1310.72];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);
const TURNS = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Names of the GenAI conventions if they define one; otherwise names that clients of the protocol know. */
const instruments = {
  operationDuration: {
    name: "gen_ai.client.operation.duration",
    unit: "s",
    description: "Duration of a model call.",
    bounds: SECONDS,
  },
  tokenUsage: {
    name: "gen_ai.client.token.usage",
    unit: "{token}",
    description: "Tokens used by a model call.",
    bounds: TOKENS,
  },
  timeToFirstChunk: {
    name: "gen_ai.client.operation.time_to_first_chunk",
    unit: "s",
    description: "Time to the first part of a reply.",
    bounds: SECONDS,
  },
  workflowDuration: {
    name: "gen_ai.workflow.duration",
    unit: "s",
    description: "Duration of the answer to a message, including the agents it waited for.",
    bounds: LONG_SECONDS,
  },
  toolCalls: { name: "github.copilot.tool.call.count", unit: "{call}", description: "Tool calls." },
  toolDuration: {
    name: "github.copilot.tool.call.duration",
    unit: "s",
    description: "Duration of a tool call.",
    bounds: LONG_SECONDS,
  },
  turns: {
    name: "github.copilot.agent.turn.count",
    unit: "{turn}",
    description: "Model calls that an agent made for one message.",
    bounds: TURNS,
  },
  memories: {
    name: "troupe.memory.facts",
    unit: "{fact}",
    description: "Facts in the memory of a session.",
    bounds: [0, 1, 3, 10, 30, 100, 300],
  },
  shutdownConsolidations: {
    name: "troupe.memory.shutdown_consolidation.count",
    unit: "{session}",
    description: "Sessions that ended with the context board on, by the outcome of their consolidation.",
  },
} as const satisfies Record<string, Instrument>;

export type InstrumentName = keyof typeof instruments;

export interface Point {
  readonly attributes: Attributes;
  count: number;
  sum: number;
  min: number;
  max: number;
  /** One more than there are bounds. */
  readonly buckets: number[];
}

export interface Metric {
  readonly instrument: Instrument;
  /** The values are cumulative since `start`. The `sum` of a gauge is its value at `time`. */
  readonly start: number;
  readonly time: number;
  readonly points: readonly Point[];
}

/** Maximum number of points. Further attribute sets share one overflow point. */
const MAX_POINTS = 1_000;
const MAX_READINGS = 10_000;
const OVERFLOW: Attributes = { "otel.metric.overflow": true };

export class MetricMeter {
  readonly #start: number;
  readonly #points = new Map<InstrumentName, Map<string, Point>>();
  #readings: readonly Reading[] = [];
  #isChanged = false;

  constructor(start: number) {
    this.#start = start;
  }

  record(name: InstrumentName, value: number, attributes: Attributes): void {
    if (!Number.isFinite(value)) return;
    this.#isChanged = true;
    const point = this.#pointOf(name, attributes);
    point.count++;
    point.sum += value;
    point.min = Math.min(point.min, value);
    point.max = Math.max(point.max, value);
    const instrument: Instrument = instruments[name];
    const index = instrument.bounds?.findIndex((bound) => value <= bound) ?? -1;
    const bucket = index < 0 ? point.buckets.length - 1 : index;
    point.buckets[bucket] = (point.buckets[bucket] ?? 0) + 1;
  }

  /** Sets the values of all gauges, for one export. */
  show(readings: readonly Reading[]): void {
    this.#isChanged ||= readings.length > 0;
    this.#readings = readings.filter(({ value }) => Number.isFinite(value));
  }

  /** Returns undefined if nothing was added since the last call. */
  take(time: number): readonly Metric[] | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = false;
    const aggregates = [...this.#points].map(([name, points]) => ({
      instrument: instruments[name],
      start: this.#start,
      time,
      points: [...points.values()].map((point) => ({ ...point, buckets: [...point.buckets] })),
    }));
    return [...aggregates, ...this.#takeGauges(time)];
  }

  #takeGauges(time: number): readonly Metric[] {
    const points = new Map<Reading["gauge"], Point[]>();
    for (const { gauge, attributes, value } of this.#readings.slice(0, MAX_READINGS)) {
      const point = { attributes, count: 1, sum: value, min: value, max: value, buckets: [] };
      const known = points.get(gauge);
      if (known) known.push(point);
      else points.set(gauge, [point]);
    }
    this.#readings = [];
    return [...points].map(([name, each]) => ({
      ...{ instrument: { ...gauges[name], kind: "gauge" }, start: time, time, points: each },
    }));
  }

  #pointOf(name: InstrumentName, attributes: Attributes): Point {
    const points = this.#points.get(name) ?? new Map<string, Point>();
    this.#points.set(name, points);
    const isFull = points.size >= MAX_POINTS && !points.has(JSON.stringify(attributes));
    const kept = isFull ? OVERFLOW : attributes;
    const key = JSON.stringify(kept);
    let point = points.get(key);
    if (!point) {
      const instrument: Instrument = instruments[name];
      const buckets = Array.from({ length: (instrument.bounds?.length ?? 0) + 1 }, () => 0);
      point = { attributes: kept, count: 0, sum: 0, min: Infinity, max: -Infinity, buckets };
      points.set(key, point);
    }
    return point;
  }
}
