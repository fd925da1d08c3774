/** Converts spans and metrics to OTLP's JSON encoding. */
import { defined } from "../lib/defined.ts";
import type { Metric, Point } from "./metrics.ts";
import type { Attributes, AttributeValue, Source, Span, SpanEvent } from "./span.ts";

const KINDS = { internal: 1, client: 3 } as const;
const ERROR = 2;
/** Aggregation temporality: values since the start, not since the last export. */
const CUMULATIVE = 2;

export function traceRequest(spans: readonly Span[], { resource, scope }: Source): object {
  const about = { resource: { attributes: attributeList(resource) } };
  return { resourceSpans: [{ ...about, scopeSpans: [{ scope, spans: spans.map(spanOf) }] }] };
}

export function metricRequest(metrics: readonly Metric[], { resource, scope }: Source): object {
  const about = { resource: { attributes: attributeList(resource) } };
  return { resourceMetrics: [{ ...about, scopeMetrics: [{ scope, metrics: metrics.map(metricOf) }] }] };
}

function spanOf({ context, parentSpanId, name, kind, start, end, attributes, events, error }: Span): object {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...defined({ traceState: context.state, parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(end),
    attributes: attributeList(attributes),
    events: events.map(eventOf),
    status: error === undefined ? {} : { message: error, code: ERROR },
    flags: context.sampled ? 1 : 0,
  };
}

function eventOf({ name, time, attributes }: SpanEvent): object {
  return { timeUnixNano: nanoseconds(time), name, attributes: attributeList(attributes) };
}

function metricOf({ instrument, start, time, points }: Metric): object {
  const { name, description, unit, bounds, kind } = instrument;
  if (kind === "gauge")
    return { name, description, unit, gauge: { dataPoints: points.map((one) => gaugeOf(one, time)) } };
  const times = { startTimeUnixNano: nanoseconds(start), timeUnixNano: nanoseconds(time) };
  const dataPoints = points.map((point) => ({ ...times, ...pointOf(point, bounds) }));
  const data = { dataPoints, aggregationTemporality: CUMULATIVE };
  return { name, description, unit, ...(bounds ? { histogram: data } : { sum: { ...data, isMonotonic: true } }) };
}

function gaugeOf({ attributes, sum }: Point, time: number): object {
  return { timeUnixNano: nanoseconds(time), asDouble: sum, attributes: attributeList(attributes) };
}

function pointOf({ attributes, count, sum, min, max, buckets }: Point, bounds: readonly number[] | undefined): object {
  if (!bounds) return { asInt: String(sum), attributes: attributeList(attributes) };
  return {
    count: String(count),
    sum,
    bucketCounts: buckets.map(String),
    explicitBounds: bounds,
    attributes: attributeList(attributes),
    min,
    max,
  };
}

function attributeList(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if ("double" in value) return { doubleValue: value.double };
  return { arrayValue: { values: value.map((one) => ({ stringValue: one })) } };
}

/** Returns text: the value exceeds the precision of a number. */
const nanoseconds = (milliseconds: number): string => (BigInt(Math.round(milliseconds)) * 1_000_000n).toString();
