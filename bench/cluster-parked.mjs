// Sessions that wait for a person: what they hold and cost. Each is a real session that a worker has begun and parked.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { environmentOf } from "./agent-scenarios.mjs";
import { idleOf } from "./cluster-scenarios.mjs";
import { clusterParts, openStage } from "./cluster-stage.mjs";
import { startMock } from "./run-child.mjs";

const WORKERS = 2;
const CONCURRENCY = 32;
const FLAGS = ["--ask", "--park-after", "0.1"];
const PARK_MS = 1_800_000;
const ANSWERS = 20;
const ANSWER_MS = 120_000;

export const parkedScenarios = [
  {
    name: "cluster-parked",
    async figures({ stage, full }) {
      const parts = await clusterParts();
      const programs = parts.postgresPrograms();
      if (programs === undefined) {
        process.stderr.write("cluster-parked: skipped: no Postgres here\n");
        return [];
      }
      const count = Number(process.env.BENCH_PARKED ?? (full ? 5_000 : 200));
      const mock = await startMock(stage.workspace);
      const environment = {
        ...environmentOf({ peer: "troupe", stage, wire: "completions", port: mock.port }),
        ...{ TROUPE_SANDBOX: "off", TROUPE_NO_DISCOVERY: "1" },
      };
      const folder = join(stage.home, "parked");
      mkdirSync(folder, { recursive: true });
      const cluster = await openStage({ parts, programs, folder, environment });
      try {
        return await park(cluster, count);
      } finally {
        await cluster.close();
        mock.stop();
      }
    },
  },
];

async function park(cluster, count) {
  for (let index = 0; index < WORKERS; index++) {
    await cluster.startWorker(`p${index}`, { flags: FLAGS, concurrency: CONCURRENCY });
  }
  const waiting = (count_) => cluster.until("waiting_at is not null", count_, PARK_MS);
  const prompts = (number) => Array.from({ length: number }, () => "Run it. [[bench:shell:1]]");
  await cluster.submit(prompts(WORKERS), { asks: ["permission"] });
  await waiting(WORKERS);
  await cluster.rested();
  const before = { idle: await idleOf(cluster, WORKERS), bytes: await bytesOf(cluster), ...(await cluster.usage()) };
  const from = performance.now();
  const ids = await cluster.submit(prompts(count), { asks: ["permission"] });
  await waiting(WORKERS + count);
  const seconds = (performance.now() - from) / 1000;
  await cluster.rested();
  const after = { idle: await idleOf(cluster, WORKERS), bytes: await bytesOf(cluster), ...(await cluster.usage()) };
  const held = await cluster.one(
    `select (select count(*) from troupe.session where holder is not null)::int as sessions,
            (select count(*) from troupe.queue where dispatched_at is not null)::int as places,
            (select count(*) from dbos.workflow_status where status in ('PENDING', 'ENQUEUED'))::int as workflows`,
  );
  const rows = await cluster.one(
    `select (select count(*) from troupe.event where session_id = any($1))::float8 as lines,
            (select count(*) from dbos.workflow_status)::float8 as workflows`,
    [ids],
  );
  const answered = await answerSome(cluster, ids.slice(0, ANSWERS));
  const row = (name, unit, value, target) => ({ name, unit, troupe: { p50: value }, ...(target && { target }) });
  const beside = (name, unit, floor, troupe, target) => ({ ...row(name, unit, troupe, target), floor: { p50: floor } });
  return [
    row(`sessions parked, ${WORKERS} workers`, "", count),
    row("places, holders and workflows they hold", "", held.sessions + held.places + held.workflows, {
      kind: "most",
      limit: 0,
    }),
    row("sessions parked per second", "/s", count / seconds),
    row("log lines per parked session", "", rows.lines / count),
    row("bytes of tables and indexes per parked session", "B", (after.bytes - before.bytes) / count),
    beside(
      "transactions of an idle worker (floor: nothing parked)",
      "/s",
      before.idle.transactions,
      after.idle.transactions,
    ),
    beside("CPU of Postgres for an idle worker, per second", "ms", before.idle.serverMs, after.idle.serverMs),
    beside("CPU of an idle worker, per second", "ms", before.idle.workerMs, after.idle.workerMs),
    beside("connections of a worker", "", before.connections, after.connections),
    row("peak memory of a worker", "MB", after.peakBytes / 1e6),
    row(`answered afterwards and done, of ${ANSWERS}`, "", answered, { kind: "least", limit: ANSWERS }),
  ];
}

async function bytesOf({ one }) {
  const { bytes } = await one(
    `select sum(pg_total_relation_size(c.oid))::float8 as bytes from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname in ('troupe', 'dbos')`,
  );
  return bytes;
}

/** The first answer of a person resumes a session. Workers look for answers whose sender was lost. */
async function answerSome(cluster, ids) {
  await cluster.database.query(
    `insert into troupe.answer(session_id, request_id, kind, answer)
     select session_id, id, kind, '{"kind":"approved"}' from troupe.request where session_id = any($1) and ended_at is null`,
    [ids],
  );
  await cluster.finished(ids, ANSWER_MS);
  const { done } = await cluster.one(
    "select count(*)::int as done from troupe.work where session_id = any($1) and outcome->>'answer' = 'done'",
    [ids],
  );
  return done;
}
