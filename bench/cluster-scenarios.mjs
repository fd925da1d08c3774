// Sessions on Postgres and several workers, beside the same sessions in processes with the file store: one per core.
import { fork } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { environmentOf } from "./agent-scenarios.mjs";
import { clusterParts, cpuOf, openStage } from "./cluster-stage.mjs";
import { startMock } from "./run-child.mjs";
import { quantile, spread } from "./statistics.mjs";

const program = fileURLToPath(new URL("./cluster-jsonl.mjs", import.meta.url));
const AGENTS = 3;
/** One request starts the agents, two are of each agent, one answers. */
const TURNS = 2 + 2 * AGENTS;
const LONG_TURNS = 40;
const LATENCY_SAMPLES = 20;
const ROUNDS = 10;
const IDLE_MS = 8_000;
/** A connection of Postgres reports what it did at most this much later. */
const REPORT_MS = 11_000;
const AT_ONCE = 8;
const RUN_MS = 600_000;

const team = (count) => Array.from({ length: count }, () => `Ask your agents. [[bench:team:${AGENTS}]]`);
const warmUp = (count) => Array.from({ length: count }, () => "Read the files one by one. [[bench:turns:3]]");
const long = `Read the files one by one. [[bench:turns:${LONG_TURNS}]]`;

export const clusterScenarios = [
  {
    name: "cluster",
    async figures({ stage, full }) {
      const parts = await clusterParts();
      const programs = parts.postgresPrograms();
      if (programs === undefined) {
        process.stderr.write("cluster: skipped: no Postgres here\n");
        return [];
      }
      const size = sizeOf(full);
      const mock = await startMock(stage.workspace);
      const environment = {
        ...environmentOf({ peer: "troupe", stage, wire: "completions", port: mock.port }),
        ...{ TROUPE_SANDBOX: "off", TROUPE_NO_DISCOVERY: "1" },
      };
      const context = { parts, programs, mock, environment, size, stage, ledger: join(stage.workspace, "ledger") };
      try {
        // Half of it before and half of it after, so that a machine that becomes busier disturbs both alike.
        const before = await onFiles(context, "before");
        const cluster = await onPostgres(context);
        const after = await onFiles(context, "after");
        return figuresOf({ files: [before, after], cluster, size });
      } finally {
        mock.stop();
      }
    },
  },
];

/** `BENCH_CLUSTER=<sessions>x<workers>` gives another size; one worker is killed if there are more than two. */
function sizeOf(full) {
  const [, sessions, workers] = /^(\d+)x(\d+)$/.exec(process.env.BENCH_CLUSTER ?? "") ?? [];
  const size = { sessions: Number(sessions ?? (full ? 1_000 : 100)), workers: Number(workers ?? (full ? 4 : 2)) };
  return { ...size, kills: size.workers > 2 };
}

async function onFiles({ mock, environment, size, stage, ledger }, name) {
  const processes = Array.from({ length: availableParallelism() }, (_, index) => {
    const home = join(stage.home, `files-${name}-${index}`);
    mkdirSync(home, { recursive: true });
    return startProcess(home, { PATH: process.env.PATH, ...environment, HOME: home, TROUPE_HOME: home });
  });
  try {
    await Promise.all(processes.map(({ run }) => run([...warmUp(AT_ONCE), ...team(AT_ONCE)], AT_ONCE)));
    const gaps = [];
    for (let round = 0; round < ROUNDS; round++) gaps.push(...(await gapsOf(mock, () => processes[0].run([long], 1))));
    const count = Math.ceil(size.sessions / 2 / processes.length);
    const atOnce = Math.ceil((size.workers * AT_ONCE) / processes.length);
    const cpuBefore = cpuOfAll(processes);
    const from = performance.now();
    await Promise.all(processes.map(({ run }) => run(team(count), atOnce)));
    const seconds = (performance.now() - from) / 1000;
    const sessions = count * processes.length;
    return { gaps, sessions, seconds, cpuMs: cpuOfAll(processes) - cpuBefore, processes: processes.length };
  } finally {
    for (const { child } of processes) child.kill("SIGKILL");
    rmSync(ledger, { force: true });
    await mock.take();
  }
}

const cpuOfAll = (processes) => processes.reduce((total, { child }) => total + cpuOf(child.pid), 0);

function startProcess(home, environment) {
  const child = fork(program, [home], { execArgv: [], env: environment });
  const ended = new Promise((_, reject) => {
    child.once("exit", (code, signal) => reject(new Error(`the process with files ended (${code ?? signal})`)));
  });
  ended.catch(() => {}); // Expected in the end.
  const run = async (prompts, atOnce) => {
    const answer = new Promise((resolve) => child.once("message", resolve));
    child.send({ prompts, atOnce });
    const { problem } = await Promise.race([answer, ended]);
    if (problem) throw new Error(`on files: ${problem}`);
  };
  return { child, run };
}

/** Own time per turn: from the end of a reply to the next request. The first two hold what is compiled on first use. */
async function gapsOf(mock, work) {
  await mock.take();
  await work();
  const requests = await mock.take();
  if (requests.length !== LONG_TURNS + 1) throw new Error(`${requests.length} requests instead of ${LONG_TURNS + 1}`);
  return requests.slice(3).map(({ gapMs }) => gapMs);
}

async function onPostgres(context) {
  const { mock, size, ledger } = context;
  const cluster = await openStage({ ...context, folder: join(context.stage.home, "cluster") });
  try {
    for (let index = 0; index < size.workers; index++) await cluster.startWorker(`w${index}`);
    const ask = async (prompts) => cluster.finished(await cluster.submit(prompts), RUN_MS);
    await ask([...warmUp(size.workers * AT_ONCE), ...team(size.workers * AT_ONCE)]);
    const waits = await waitsOf(cluster, ask);
    const gaps = [];
    for (let round = 0; round < ROUNDS; round++) gaps.push(...(await gapsOf(mock, () => ask([long]))));
    await cluster.rested();
    const idle = await idleOf(cluster, size.workers);
    const load = await loadOf(cluster, size);
    const { connections, peakBytes } = await cluster.usage();
    await cluster.rested();
    const stored = await storedBy(cluster, load.ids);
    const violations = await cluster.violations(ledger);
    for (const line of violations.slice(0, 10)) process.stderr.write(`cluster: ${line}\n`);
    return { gaps, waits, idle, ...load, stored, connections, peakBytes, violations: violations.length };
  } finally {
    await cluster.close();
    rmSync(ledger, { force: true });
  }
}

/** From the moment a prompt is stored to the moment a worker begins, while all places are free. */
async function waitsOf(cluster, ask) {
  const { now } = await cluster.one("select clock_timestamp()::text as now");
  for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
    await ask(warmUp(1));
    await sleep(Math.random() * 100); // Polls must not be in step.
  }
  const { rows } = await cluster.database.query(
    `select (extract(epoch from started_at - created_at) * 1000)::float8 as ms from troupe.work
     where created_at > $1::timestamptz`,
    [now],
  );
  return rows.map(({ ms }) => ms);
}

export async function idleOf(cluster, workers) {
  const commits = () =>
    cluster.one("select xact_commit::float8 as count from pg_stat_database where datname = current_database()");
  await sleep(REPORT_MS);
  const [before, from, cpuBefore] = [await cluster.counters(), await commits(), await cluster.cpu()];
  await sleep(IDLE_MS);
  const [after, to, cpuAfter] = [await cluster.counters(), await commits(), await cluster.cpu()];
  const each = (value) => value / workers / ((after.at - before.at) / 1000);
  return {
    transactions: each(to.count - from.count),
    statements: each(after.statements - before.statements),
    serverMs: each(cpuAfter.server - cpuBefore.server),
    workerMs: each(cpuAfter.workers - cpuBefore.workers),
  };
}

async function loadOf(cluster, { sessions, workers, kills }) {
  const [before, cpuBefore] = [await cluster.counters(), await cluster.cpu()];
  const from = performance.now();
  const ids = await cluster.submit(team(sessions));
  const submitMs = performance.now() - from;
  let lost;
  await cluster.finished(ids, RUN_MS, (count) => {
    if (!kills || lost || count < sessions / 3) return;
    lost = cluster.workers[workers - 1];
    cluster.kill(lost);
  });
  const seconds = (performance.now() - from) / 1000;
  const [after, cpuAfter] = [await cluster.counters(), await cluster.cpu()];
  const used = Object.fromEntries(Object.keys(before).map((key) => [key, after[key] - before[key]]));
  const cpu = { server: cpuAfter.server - cpuBefore.server, workers: cpuAfter.workers - cpuBefore.workers };
  const { taken } = await cluster.one(
    "select count(*)::int as taken from troupe.work where starts > 1 and session_id = any($1)",
    [ids],
  );
  return { ids, seconds, used, cpu, submitMs, taken };
}

async function storedBy({ one }, ids) {
  const log = await one(
    "select count(*)::float8 as rows, sum(octet_length(line))::float8 as bytes from troupe.event where session_id = any($1)",
    [ids],
  );
  const { done } = await one(
    "select count(*)::int as done from troupe.work where session_id = any($1) and outcome->>'answer' = 'done'",
    [ids],
  );
  const { disk, sessions } = await one(
    `select sum(pg_total_relation_size(c.oid))::float8 as disk, (select count(*) from troupe.session)::float8 as sessions
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname in ('troupe', 'dbos')`,
  );
  return { ...log, done, diskPerSession: disk / sessions };
}

function figuresOf({ files, cluster, size }) {
  const total = (pick) => files.reduce((all, half) => all + pick(half), 0);
  const filesRate = total((half) => half.sessions) / total((half) => half.seconds);
  const filesCpu = total((half) => half.cpuMs) / total((half) => half.sessions);
  const { sessions } = size;
  const { used, cpu, stored } = cluster;
  const rate = sessions / cluster.seconds;
  const row = (name, unit, value, target) => ({ name, unit, troupe: { p50: value }, ...(target && { target }) });
  const beside = (name, unit, floor, troupe, target) => ({
    ...row(name, unit, troupe, target),
    floor: { p50: floor },
  });
  const each = (name, unit, value) => [
    row(`${name} per session`, unit, value / sessions),
    row(`${name} per turn`, unit, value / sessions / TURNS),
  ];
  const { workers, kills } = size;
  const processes = files[0].processes;
  return [
    row(`sessions done of ${sessions}, ${workers} workers${kills ? ", one killed" : ""}`, "", stored.done, {
      kind: "least",
      limit: sessions,
    }),
    ...(kills ? [row("sessions taken over", "", cluster.taken)] : []),
    row("violations", "", cluster.violations, { kind: "most", limit: 0 }),
    beside(`sessions per second (floor: ${processes} processes, files)`, "/s", filesRate, rate),
    row("throughput against files", "×", rate / filesRate, { kind: "least", limit: 0.6 }),
    beside("CPU per session (floor: files)", "ms", filesCpu, (cpu.workers + cpu.server) / sessions),
    row("… of it Postgres", "ms", cpu.server / sessions),
    {
      ...{ name: "own time per turn, one session (floor: files)", unit: "ms" },
      ...{ floor: spread(files.flatMap(({ gaps }) => gaps)), troupe: spread(cluster.gaps) },
      target: { kind: "difference", limit: 2 },
    },
    {
      ...{ name: "submit to start, p50 / p90", unit: "ms", troupe: spread(cluster.waits) },
      target: { kind: "most", limit: 100 },
    },
    row("submit to start, p99", "ms", quantile(cluster.waits, 0.99)),
    row("time to submit one session", "ms", cluster.submitMs / sessions),
    ...each("log lines", "", stored.rows),
    ...each("bytes of log", "B", stored.bytes),
    ...each("bytes of WAL", "B", used.wal),
    row("bytes of tables and indexes per session", "B", stored.diskPerSession),
    ...each("statements", "", used.statements),
    row("… of them appends, per turn", "", used.appends / sessions / TURNS),
    row("… of them the engine's, per session", "", used.engine / sessions),
    row("… of them begin and commit, per session", "", used.frames / sessions),
    ...each("time of statements", "ms", used.statementMs),
    row("transactions of an idle worker", "/s", cluster.idle.transactions, { kind: "most", limit: 20 }),
    row("statements of an idle worker", "/s", cluster.idle.statements),
    row("CPU of Postgres for an idle worker, per second", "ms", cluster.idle.serverMs),
    row("connections of a worker", "", cluster.connections),
    row("peak memory of a worker", "MB", cluster.peakBytes / 1e6),
  ];
}
