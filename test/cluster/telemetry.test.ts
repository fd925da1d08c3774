/** Metrics of a cluster, and traces that continue on its workers: a real Postgres server and a receiver on the loopback. */

import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readMeasures } from "../../src/runtime/cluster/measures.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcessGateway } from "../../src/server/gateway/in-process-gateway.ts";
import { calls, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();

if (programs === undefined) it.skip("workers export metrics and traces (skipped: no Postgres here)");

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, string>>;
}
interface ExportedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly parentSpanId?: string;
}
interface Exported {
  readonly resource: { readonly attributes: readonly Attribute[] };
  readonly scopeSpans?: readonly { readonly spans: readonly ExportedSpan[] }[];
  readonly scopeMetrics?: readonly {
    readonly metrics: readonly {
      readonly name: string;
      readonly gauge?: { readonly dataPoints: readonly { asDouble: number; attributes: readonly Attribute[] }[] };
    }[];
  }[];
}

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const traced = { TRACEPARENT: `00-${TRACE}-${SPAN}-01` };

const plain = (attributes: readonly Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

describe.runIf(programs !== undefined)("telemetry of a cluster", () => {
  let stage: ClusterStage;
  let server: Server;
  let environment: Record<string, string>;
  const exported: Exported[] = [];

  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, Exported[]>;
      exported.push(...Object.values(body).flat());
      response.end("{}");
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      ...{ OTEL_METRIC_EXPORT_INTERVAL: "100", OTEL_BSP_SCHEDULE_DELAY: "50" },
    };
    stage = await ClusterStage.open(programs ?? "");
  });
  afterAll(async () => {
    await stage?.close();
    server.close();
  });

  const instanceOf = ({ resource }: Exported) => plain(resource.attributes)["service.instance.id"];
  /** The last values that a worker has exported. */
  const gauges = (worker: string) => {
    const last = exported.findLast((one) => one.scopeMetrics && instanceOf(one) === worker);
    const all = (last?.scopeMetrics ?? []).flatMap(({ metrics }) => metrics);
    return all.flatMap(({ name, gauge }) =>
      (gauge?.dataPoints ?? []).map(({ asDouble, attributes }) => [name, plain(attributes), asDouble] as const),
    );
  };
  const spans = () =>
    exported.flatMap((one) =>
      (one.scopeSpans ?? []).flatMap((scope) => scope.spans.map((span) => ({ ...span, worker: instanceOf(one) }))),
    );

  it("telemetry of a cluster exports gauges of each worker, and submitted work below the submitter's span", async () => {
    const { database } = stage;
    await stage.submit(2, { pool: "nobody", tenant: "acme" });
    const [parked, aside] = await stage.submit(2, { pool: "nobody", tenant: "globex" });
    await database.query("update troupe.work set waiting_at = clock_timestamp() where session_id = $1", [parked]);
    await database.query(
      "update troupe.work set set_aside = 'x', outcome = '{\"kind\":\"failed\"}' where session_id = $1",
      [aside],
    );
    await database.query(`insert into troupe.session(id, epoch, tenant, takeovers) values('moved', 1, 'acme', 3)`);
    await database.query(`insert into troupe.budget(tenant, cost_usd, spent_usd, spent_tokens, period, since) values
      ('acme', 10, 2.5, 7, 'total', clock_timestamp()), ('old', 10, 2.5, 7, 'day', clock_timestamp() - interval '3 days')`);
    await database.query(`insert into troupe.rate_limit(name, requests, gate_until) values
      ('shut', 1, clock_timestamp() + interval '1 h'), ('open', 1, null)`);
    await database.query(`insert into troupe.worker(id, host, pid, pool, expires_at) values
      ('gone', 'h', 1, 'other', clock_timestamp() - interval '1 h')`);
    const worker = await stage.worker("one", { environment });
    stage.play("giraffe", says("giraffes are tall"));
    expect(await stage.run(["submit", "-p", "Say giraffe.", "--wait"], traced)).toMatchObject({ code: 0 });
    await expect.poll(() => spans().map(({ name }) => name), HANG).toContain("invoke_agent troupe");
    const run = spans().find(({ name }) => name === "invoke_agent troupe");
    expect(run).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, worker: worker.id });
    expect(new Set(spans().map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));

    const tenant = (name: string, more = {}) => ({ "troupe.cluster.tenant": name, ...more });
    const state = (name: string) => ({ "troupe.session.state": name });
    const expected = [
      ["troupe.cluster.workers", { "troupe.cluster.pool": "default", "troupe.worker.state": "alive" }, 1],
      ["troupe.cluster.workers", { "troupe.cluster.pool": "other", "troupe.worker.state": "lost" }, 1],
      ["troupe.cluster.leases", { "troupe.cluster.pool": "default" }, 1],
      ["troupe.cluster.leases", { "troupe.cluster.pool": "other" }, 0],
      ["troupe.cluster.sessions", tenant("acme", state("queued")), 2],
      ["troupe.cluster.sessions", tenant("globex", state("waiting")), 1],
      ["troupe.cluster.oldest_wait", tenant("acme"), expect.any(Number)],
      ["troupe.cluster.takeovers", tenant("acme"), 3],
      ["troupe.cluster.set_aside", tenant("globex"), 1],
      ["troupe.cluster.budget.cost", tenant("acme"), 2.5],
      ["troupe.cluster.budget.cost", tenant("old"), 0],
      ["troupe.cluster.budget.tokens", tenant("acme"), 7],
      ["troupe.cluster.budget.use", tenant("acme", { "troupe.cluster.limit": "cost" }), 0.25],
      ["troupe.cluster.gate.shut", { "troupe.cluster.limit": "shut" }, 1],
      ["troupe.cluster.gate.shut", { "troupe.cluster.limit": "open" }, 0],
    ];
    await expect.poll(() => gauges(worker.id), HANG).toEqual(expect.arrayContaining(expected));
    const waits = gauges(worker.id).filter(([name]) => name === "troupe.cluster.oldest_wait");
    expect(waits).toHaveLength(1);
    expect(waits[0]?.[2]).toBeGreaterThan(0);
  });

  it.runIf(SLOW)(
    "telemetry of a cluster keeps the trace when a worker is killed and another one continues",
    async () => {
      await stage.clear();
      exported.length = 0;
      const mark = stage.folder.at("okapi");
      stage.play("okapi", calls(["bash", { command: `touch ${mark}; sleep 20`, description: "wait" }]), says("moved"));
      const killed = await stage.worker("killed", { environment });
      const submitted = stage.run(["submit", "-p", "Say okapi.", "--wait"], traced);
      await expect.poll(() => existsSync(mark), HANG).toBe(true);
      await expect.poll(() => spans().map(({ worker }) => worker), HANG).toContain(killed.id);
      killed.child.kill("SIGKILL");
      const next = await stage.worker("next", { environment });
      expect(await submitted).toMatchObject({ code: 0, stdout: "moved\n" });
      await expect
        .poll(() => spans().find(({ name }) => name.startsWith("invoke_agent")), HANG)
        .toMatchObject({
          ...{ traceId: TRACE, parentSpanId: SPAN, worker: next.id },
        });
      const chats = spans().filter(({ name }) => name.startsWith("chat"));
      expect(new Set(chats.map(({ worker }) => worker))).toEqual(new Set([killed.id, next.id]));
      expect(new Set(chats.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
      const takeOvers = ["troupe.cluster.takeovers", { "troupe.cluster.tenant": "default" }, 1];
      await expect.poll(() => gauges(next.id), HANG).toContainEqual(takeOvers);
    },
  );

  it("telemetry of a cluster counts a running session, and keeps the trace of a message of the SDK", async () => {
    const mark = stage.folder.at("zebra");
    stage.play("zebra", calls(["bash", { command: `touch ${mark}; sleep 20`, description: "wait" }]));
    const connection = inProcessGateway({ url: stage.url, home: stage.folder.at("gateway") });
    const client = await createClient({ connection });
    const session = await client.createSession({});
    // The published SDK sends these with `onGetTraceContext`.
    const trace = { traceparent: traced.TRACEPARENT, tracestate: "v=1" };
    const message = { prompt: "Say zebra.", ...trace };
    await session.send(message);
    await expect.poll(() => existsSync(mark), HANG).toBe(true);
    const readings = await readMeasures(stage.database);
    const ofTenant = readings.filter(({ attributes }) => attributes["troupe.cluster.tenant"] === "default");
    expect(ofTenant.filter(({ gauge }) => gauge === "sessions")).toEqual([
      {
        gauge: "sessions",
        attributes: { "troupe.cluster.tenant": "default", "troupe.session.state": "running" },
        value: 1,
      },
    ]);
    const { rows } = await stage.database.query<{ trace: object }>(
      "select request->'trace' as trace from troupe.work where session_id = $1",
      [session.sessionId],
    );
    expect(rows).toEqual([{ trace }]);
    await client.stop();
  });
});
