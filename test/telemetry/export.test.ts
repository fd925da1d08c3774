import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { MetricMeter } from "../../src/telemetry/metrics.ts";
import { metricRequest, traceRequest } from "../../src/telemetry/otlp-json.ts";
import { protobuf } from "../../src/telemetry/otlp-protobuf.ts";
import { type Exporter, Outbox } from "../../src/telemetry/outbox.ts";
import { isTelemetryWanted, telemetrySettings } from "../../src/telemetry/settings.ts";
import type { Source, Span } from "../../src/telemetry/span.ts";
import { Telemetry } from "../../src/telemetry/telemetry.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { HANG_MS } from "../support/work.ts";

const source: Source = { resource: { "service.name": "s" }, scope: { name: "scope", version: "1" } };
const span = (more: Partial<Span> = {}): Span => ({
  name: "chat m",
  kind: "client",
  context: { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", sampled: true },
  parentSpanId: "00f067aa0ba902b7",
  start: 1_700_000_000_000,
  end: 1_700_000_000_250,
  attributes: { text: "x", whole: -3, part: { double: 1.5 }, yes: true, list: ["a", "b"] },
  events: [{ name: "e", time: 1_700_000_000_100, attributes: {} }],
  error: "rate_limit",
  ...more,
});

describe("whether telemetry is wanted, and how", () => {
  it.each([
    [{}, false],
    [{ COPILOT_OTEL_ENABLED: "true" }, true],
    [{ TROUPE_OTEL_ENABLED: "1" }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318" }, true],
    [{ COPILOT_OTEL_FILE_EXPORTER_PATH: "t.jsonl" }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318", TROUPE_OTEL_ENABLED: "false" }, false],
    [{ COPILOT_OTEL_ENABLED: "true", OTEL_SDK_DISABLED: "true" }, false],
    [{ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, false],
  ])("telemetry settings %j: %s", (environment, wanted) => {
    expect(isTelemetryWanted(environment)).toBe(wanted);
  });

  it("telemetry uses the standard's variables, prefers ours to the contract's, and reports mistakes", () => {
    const settings = telemetrySettings(
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: "https://host/base/",
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "https://other/m",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
        OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20b, second=c",
        OTEL_RESOURCE_ATTRIBUTES: "team=core,service.name=theirs",
        TROUPE_OTEL_FILE_EXPORTER_PATH: "t.jsonl",
        COPILOT_OTEL_FILE_EXPORTER_PATH: "other.jsonl",
        COPILOT_OTEL_SOURCE_NAME: "mine",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
      },
      "/work",
    );
    expect(settings).toEqual({
      file: "/work/t.jsonl",
      otlp: {
        protocol: "http/protobuf",
        traces: "https://host/base/v1/traces",
        metrics: "https://other/m",
        headers: { "x-key": "a b", second: "c" },
        timeoutMs: 10_000,
      },
      scopeName: "mine",
      resource: { team: "core", "service.name": "theirs" },
      captureContent: true,
      spanDelayMs: 5_000,
      metricDelayMs: 60_000,
    });
    const refusal = (environment: Record<string, string>) =>
      Reflect.get(telemetrySettings(environment, "/"), "refused");
    expect(refusal({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toMatch(/"grpc" is not supported; set .*http\/json/);
    expect(refusal({ OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4317" })).toMatch(/not an http or https address/);
    const signedIn = refusal({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "grpc://me:s3cret@there:4317/x?key=s3cret" });
    expect(signedIn).toMatch(/^"grpc:\/\/…@there:4317\/x\?…" is not an http/);
    expect(refusal({ COPILOT_OTEL_EXPORTER_TYPE: "file" })).toMatch(/TROUPE_OTEL_FILE_EXPORTER_PATH/);
    expect(refusal({ COPILOT_OTEL_EXPORTER_TYPE: "x" })).toMatch(/"otlp-http" or "file"/);
    // One kind that is asked for is the only one.
    expect(
      telemetrySettings({ COPILOT_OTEL_EXPORTER_TYPE: "otlp-http", COPILOT_OTEL_FILE_EXPORTER_PATH: "t" }, "/"),
    ).not.toHaveProperty("file");
  });
});

describe("the exported data", () => {
  it("exported spans are the same as JSON and as protocol buffers", () => {
    const trace = traceRequest([span()], source);
    expect(trace).toEqual({
      resourceSpans: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "s" } }] },
          scopeSpans: [
            {
              scope: { name: "scope", version: "1" },
              spans: [
                {
                  traceId: "0af7651916cd43dd8448eb211c80319c",
                  spanId: "b7ad6b7169203331",
                  parentSpanId: "00f067aa0ba902b7",
                  name: "chat m",
                  kind: 3,
                  startTimeUnixNano: "1700000000000000000",
                  endTimeUnixNano: "1700000000250000000",
                  attributes: [
                    { key: "text", value: { stringValue: "x" } },
                    { key: "whole", value: { intValue: "-3" } },
                    { key: "part", value: { doubleValue: 1.5 } },
                    { key: "yes", value: { boolValue: true } },
                    { key: "list", value: { arrayValue: { values: [{ stringValue: "a" }, { stringValue: "b" }] } } },
                  ],
                  events: [{ timeUnixNano: "1700000000100000000", name: "e", attributes: [] }],
                  status: { message: "rate_limit", code: 2 },
                  flags: 1,
                },
              ],
            },
          ],
        },
      ],
    });
    const scopeSpans = within(within(fields(protobuf(trace)), 1), 2);
    expect(within(scopeSpans, 1).map(([number, value]) => [number, String(value)])).toEqual([
      [1, "scope"],
      [2, "1"],
    ]);
    const encoded = within(scopeSpans, 2);
    const at = (number: number) => encoded.filter(([one]) => one === number).map(([, value]) => value);
    expect((at(1)[0] as Buffer).toString("hex")).toBe("0af7651916cd43dd8448eb211c80319c");
    expect((at(4)[0] as Buffer).toString("hex")).toBe("00f067aa0ba902b7");
    expect([String(at(5)[0]), at(6)[0], at(8)[0], at(16)[0]]).toEqual(["chat m", 3n, 1_700_000_000_250_000_000n, 1n]);
    const values = at(9).map((one) => within(fields(one as Buffer), 2)[0]);
    expect(values.map((value) => value?.[0])).toEqual([1, 3, 4, 2, 5]);
    expect(values[1]?.[1]).toBe(2n ** 64n - 3n);
    expect(values[2]?.[1]).toBe(doubleBits(1.5));
  });

  it("exported counters and histograms have sums that continue from the start", () => {
    const meter = new MetricMeter(1_000);
    for (const value of [0.5, 3]) meter.record("operationDuration", value, { "gen_ai.request.model": "m" });
    meter.record("toolCalls", 1, {});
    const request = metricRequest(meter.take(2_000) ?? [], source);
    const [{ scopeMetrics = [] } = {}] = Reflect.get(request, "resourceMetrics");
    const [duration, count] = scopeMetrics[0].metrics;
    const [point] = duration.histogram.dataPoints;
    expect([point.count, point.sum, point.min, point.max]).toEqual(["2", 3.5, 0.5, 3]);
    expect(point.bucketCounts).toHaveLength(point.explicitBounds.length + 1);
    expect(count.sum).toMatchObject({ isMonotonic: true, aggregationTemporality: 2, dataPoints: [{ asInt: "1" }] });
    const metrics = within(within(fields(protobuf(request)), 1), 2).filter(([number]) => number === 2);
    const histogram = within(within(fields(metrics[0]?.[1] as Buffer), 9), 1);
    const buckets = histogram.find(([number]) => number === 6)?.[1] as Buffer;
    expect(buckets).toHaveLength(8 * point.bucketCounts.length);
    expect(histogram.find(([number]) => number === 4)?.[1]).toBe(2n);
    expect(histogram.find(([number]) => number === 5)?.[1]).toBe(doubleBits(3.5));
  });

  it("exported gauges have the values of their last reading, each once", () => {
    const meter = new MetricMeter(0);
    const attributes = { "troupe.cluster.pool": "p" };
    meter.show([{ gauge: "leases", value: 1, attributes }]);
    meter.show([
      { gauge: "leases", value: 2.5, attributes },
      { gauge: "workers", value: Number.NaN, attributes },
    ]);
    const request = metricRequest(meter.take(7) ?? [], source);
    const [{ scopeMetrics = [] } = {}] = Reflect.get(request, "resourceMetrics");
    expect(scopeMetrics[0].metrics).toMatchObject([
      {
        name: "troupe.cluster.leases",
        gauge: {
          dataPoints: [{ timeUnixNano: "7000000", asDouble: 2.5, attributes: [{ key: "troupe.cluster.pool" }] }],
        },
      },
    ]);
    const metric = within(within(within(fields(protobuf(request)), 1), 2), 2);
    const point = within(within(metric, 5), 1);
    expect(point.slice(0, 2)).toEqual([
      [3, 7_000_000n],
      [4, doubleBits(2.5)],
    ]);
    expect(meter.take(8)).toBeUndefined();
  });

  it("exported metrics have a bounded number of points, whatever names are used", () => {
    const meter = new MetricMeter(0);
    for (let number = 0; number < 1_500; number++) meter.record("toolCalls", 1, { "gen_ai.tool.name": `t${number}` });
    const [calls] = meter.take(1) ?? [];
    expect(calls?.points).toHaveLength(1_001);
    expect(calls?.points.at(-1)).toMatchObject({ attributes: { "otel.metric.overflow": true }, sum: 500 });
  });
});

describe("an outbox", () => {
  const silent = (more: Partial<Exporter> = {}): Exporter => ({
    name: "there",
    spans: async () => undefined,
    metrics: async () => undefined,
    close: async () => undefined,
    ...more,
  });

  it("a telemetry outbox has a limit, and reports once that something was lost", async () => {
    const troubles: string[] = [];
    let taken = 0;
    const spans: Exporter["spans"] = (batch) => {
      taken += batch.length;
      return new Promise<void>(() => undefined);
    };
    const outbox = new Outbox({
      exporter: silent({ spans }),
      delayMs: 1_000,
      onTrouble: (message) => troubles.push(message),
    });
    for (let number = 0; number < 10_000; number++) outbox.add(span());
    await Promise.resolve();
    expect(troubles).toEqual(["Telemetry to there is being lost: events arrive faster than they can be sent."]);
    const started = performance.now();
    await outbox.close(50);
    expect(performance.now() - started).toBeLessThan(HANG_MS);
    expect([outbox.dropped, taken <= 2_048]).toEqual([10_000, true]);
    expect(troubles).toHaveLength(1);
  });

  it("a telemetry outbox is bounded by size, too", () => {
    const outbox = new Outbox({ exporter: silent(), delayMs: 60_000, onTrouble: () => undefined });
    for (let number = 0; number < 300; number++) outbox.add(span({ attributes: { text: "x".repeat(65_536) } }));
    expect(outbox.dropped).toBeGreaterThan(100);
  });
});

describe("a receiver over HTTP", () => {
  async function receiver(statuses: number[]) {
    const bodies: { url: string | undefined; type: string | undefined; key: unknown; body: Buffer }[] = [];
    const server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const { url, headers } = request;
      bodies.push({ url, type: headers["content-type"], key: headers["x-key"], body: Buffer.concat(parts) });
      response.writeHead(statuses.shift() ?? 200).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return { bodies, address: `http://127.0.0.1:${port}`, close: () => server.close() };
  }

  const open = (environment: Record<string, string>, onTrouble: (message: string) => void = () => undefined) => {
    const settings = telemetrySettings(environment, "/");
    if ("refused" in settings) throw new Error(settings.refused);
    return new Telemetry({
      ...{ settings, version: "1", disk: nodeDisk, onTrouble },
      // Pauses before the next attempt take no time; the end of the process does.
      stamp: { ...systemStamp, sleep: fauxStamp().sleep },
    });
  };
  const play = (telemetry: Telemetry): void => {
    const trace = telemetry.traceOf("session-1");
    telemetry.follow({ id: "session-1", subscribe: () => () => undefined }, trace);
    const event = { id: "1", timestamp: new Date().toISOString(), parentId: null } as const;
    trace.onEvent({ ...event, type: "user.message", data: { content: "x", delivery: "idle" } });
    telemetry.ended(trace);
  };

  it("a telemetry receiver gets spans and metrics with the configured headers, again when it was busy", async () => {
    const there = await receiver([503]);
    const telemetry = open({
      OTEL_EXPORTER_OTLP_ENDPOINT: there.address,
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=k",
    });
    play(telemetry);
    await telemetry.close(2_000);
    there.close();
    expect(there.bodies.map(({ url, type, key }) => [url, type, key])).toEqual([
      ["/v1/traces", "application/json", "k"],
      ["/v1/traces", "application/json", "k"],
      ["/v1/metrics", "application/json", "k"],
    ]);
    expect(String(there.bodies[1]?.body)).toContain('"name":"invoke_agent troupe"');
  });

  it("a telemetry receiver gets protocol buffers on request, and is not asked twice when it refuses", async () => {
    const there = await receiver([400, 400]);
    const troubles: string[] = [];
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: there.address,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
    };
    const telemetry = open(environment, (message) => troubles.push(message));
    play(telemetry);
    await telemetry.close(2_000);
    there.close();
    expect(there.bodies.map(({ url, type }) => [url, type])).toEqual([
      ["/v1/traces", "application/x-protobuf"],
      ["/v1/metrics", "application/x-protobuf"],
    ]);
    expect(troubles).toEqual([`Telemetry to ${there.address} is being lost: it answered with status 400.`]);
  });

  it("an unreachable telemetry receiver loses only its own data, with one report", async () => {
    await using folder = await tempFolder();
    const there = await receiver([]);
    there.close();
    const troubles: string[] = [];
    const path = folder.at("traces/t.jsonl");
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: there.address, TROUPE_OTEL_FILE_EXPORTER_PATH: path };
    const telemetry = open(environment, (message) => troubles.push(message));
    play(telemetry);
    await telemetry.close(2_000);
    expect(troubles).toEqual([expect.stringMatching(/^Telemetry to http:.* is being lost: .*ECONNREFUSED/)]);
    const lines = (await folder.read("traces/t.jsonl")).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).name)).toEqual(["invoke_agent troupe", "gen_ai.workflow.duration"]);
  });
});

type Field = readonly [number: number, value: bigint | Buffer];

/** Reads protocol buffers as far as anybody can who knows no field: numbers and what stands there. */
function fields(bytes: Buffer): Field[] {
  const found: Field[] = [];
  let place = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[place++] ?? 0;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (place < bytes.length) {
    const tag = Number(varint());
    const [number, type] = [tag >> 3, tag & 7];
    if (type === 0) found.push([number, varint()]);
    else {
      const length = type === 1 ? 8 : type === 5 ? 4 : Number(varint());
      const value = bytes.subarray(place, place + length);
      place += length;
      if (type === 2) found.push([number, value]);
      else found.push([number, type === 1 ? value.readBigUInt64LE() : BigInt(value.readUInt32LE())]);
    }
  }
  return found;
}

function within(all: readonly Field[], number: number): Field[] {
  const value = all.find(([one]) => one === number)?.[1];
  if (!Buffer.isBuffer(value)) throw new Error(`no message has the number ${number}`);
  return fields(value);
}

function doubleBits(value: number): bigint {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes.readBigUInt64LE();
}
