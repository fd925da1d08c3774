/** Writes one JSON line for each span and each metric, for grep, jq and other programs. */

import { dirname } from "node:path";
import { defined } from "../lib/defined.ts";
import type { Disk } from "../lib/node/disk.ts";
import type { Metric } from "./metrics.ts";
import type { Exporter } from "./outbox.ts";
import type { Attributes, Source, Span } from "./span.ts";

export function fileExporter({ path, disk, source }: { path: string; disk: Disk; source: Source }): Exporter {
  let opening: Promise<number> | undefined;
  const write = async (entries: readonly object[]): Promise<void> => {
    opening ??= open(path, disk);
    const fd = await opening.catch((error: unknown) => {
      opening = undefined; // the next export tries again
      throw error;
    });
    await disk.write(fd, Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")));
  };
  return {
    name: path,
    spans: (spans) => write(spans.map((span) => spanLine(span, source))),
    metrics: (metrics) => write(metrics.map((metric) => metricLine(metric, source))),
    async close() {
      const fd = await opening?.catch(() => undefined);
      opening = undefined;
      if (fd !== undefined) await disk.close(fd);
    },
  };
}

async function open(path: string, disk: Disk): Promise<number> {
  await disk.mkdir(dirname(path));
  return disk.openAppend(path);
}

function spanLine(span: Span, { resource, scope }: Source): object {
  const { name, kind, context, parentSpanId, start, end, attributes, events, error } = span;
  return {
    type: "span",
    traceId: context.traceId,
    spanId: context.spanId,
    ...defined({ parentSpanId, traceState: context.state }),
    name,
    kind: kind.toUpperCase(),
    startTime: iso(start),
    endTime: iso(end),
    attributes: plain(attributes),
    events: events.map((event) => ({ name: event.name, time: iso(event.time), attributes: plain(event.attributes) })),
    status: error === undefined ? { code: 0 } : { code: 2, message: error },
    resource: { attributes: plain(resource) },
    instrumentationScope: scope,
  };
}

function metricLine({ instrument, start, time, points }: Metric, { resource, scope }: Source): object {
  const { name, unit, description, bounds, kind } = instrument;
  return {
    type: "metric",
    name,
    unit,
    description,
    kind: kind === "gauge" ? "GAUGE" : bounds ? "HISTOGRAM" : "SUM",
    startTime: iso(start),
    time: iso(time),
    dataPoints: points.map(({ attributes, count, sum, min, max, buckets }) => ({
      attributes: plain(attributes),
      ...(bounds ? { count, sum, min, max, bounds, buckets } : { value: sum }),
    })),
    resource: { attributes: plain(resource) },
    instrumentationScope: scope,
  };
}

const iso = (time: number): string => new Date(time).toISOString();

function plain(attributes: Attributes): object {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [
      name,
      typeof value === "object" && "double" in value ? value.double : value,
    ]),
  );
}
