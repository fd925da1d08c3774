// A cluster for the bench: a private Postgres server with counters, and workers of the built program.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { memoryOf } from "./serve.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const launcher = join(root, "bin", "troupe.js");
const CONCURRENCY = 8;
const RULES = ["--allow-all-tools", "--allow-all-paths"];
const LEASE_SECONDS = 5;
const SUBMITTERS = 4;
const START_MS = 60_000;
const POLL_MS = 200;
/** Of the last work to its end in the engine. */
const REST_MS = 60_000;

const modules = [
  ["postgresPrograms, startPostgres", "test/support/postgres.ts"],
  ["openDatabase", "src/store/postgres/database.ts"],
  ["migrate", "src/store/postgres/schema.ts"],
  ["dbosEngine", "src/engine/dbos-engine.ts"],
  ["addWork", "src/runtime/cluster/work.ts"],
  ["check", "test/cluster/checker.ts"],
  ["installAudit, readRecord", "test/cluster/record.ts"],
];

/** The parts of the program and of its tests that the bench uses. They lie below the project, so that `pg` is found. */
export async function clusterParts() {
  const folder = join(root, "bench", "results", `cluster-${process.pid}`);
  const outfile = join(folder, "parts.mjs");
  const contents = modules.map(([names, path]) => `export { ${names} } from "./${path}";`).join("\n");
  try {
    await build({
      ...{ stdin: { contents, resolveDir: root, loader: "ts" }, outfile, bundle: true, packages: "external" },
      ...{ platform: "node", format: "esm", logLevel: "error" },
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The bench asks as a user of its own, so that its questions are not counted. */
export async function openStage({ parts, programs, folder, environment }) {
  const server = await parts.startPostgres(programs);
  const own = server.url.replace("troupe@", "bench@");
  try {
    const setup = await parts.openDatabase({ url: server.url, connections: 1 });
    await setup.query("alter system set shared_preload_libraries = 'pg_stat_statements'");
    await setup.query("create role bench superuser login");
    await setup.close();
    server.stop();
    server.start();
    const database = await parts.openDatabase({ url: own, connections: 2 });
    const work = await parts.openDatabase({ url: server.url, connections: SUBMITTERS });
    await database.query("create extension pg_stat_statements");
    await parts.migrate(work);
    await parts.installAudit(database);
    const engine = await parts.dbosEngine({ url: server.url, queries: work });
    return stageOf({ server, database, work, engine, parts, folder, environment });
  } catch (error) {
    server.remove();
    throw error;
  }
}

function stageOf({ server, database, work, engine, parts, folder, environment }) {
  const workers = [];
  const children = [];
  // For when the bench itself is ended by a signal.
  const abandon = () => {
    for (const child of children) child.kill("SIGKILL");
    server.remove();
  };
  process.once("exit", abandon);
  const workerIds = new Map();
  const one = async (text, values) => (await database.query(text, values)).rows[0];

  const stage = {
    database,
    workers,
    one,
    async startWorker(name, { flags = RULES, concurrency = CONCURRENCY } = {}) {
      const given = ["--concurrency", String(concurrency), ...flags];
      const worker = await startWorker({ name, folder, environment, url: server.url, children, given });
      workers.push(worker);
      workerIds.set(name, worker.id);
    },
    /** Resolves when all of it is stored. */
    async submit(prompts, more = {}) {
      const ids = prompts.map(() => crypto.randomUUID());
      let next = 0;
      const submitter = async () => {
        for (let index = next++; index < prompts.length; index = next++) {
          const sessionId = ids[index];
          const request = { prompt: prompts[index], flags: [], ...more };
          const given = { id: `work-${sessionId}`, sessionId, tenant: "default", pool: "default", onLoss: "continue" };
          await parts.addWork(work, { ...given, request });
          await engine.submit({ id: given.id, sessionId, pool: "default" });
        }
      };
      await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
      return ids;
    },
    /** Resolves when all sessions have an outcome. `progress` hears how many have one. */
    async finished(ids, timeoutMs, progress = () => undefined) {
      const end = performance.now() + timeoutMs;
      for (;;) {
        const { count } = await one(
          "select count(*)::int as count from troupe.work where session_id = any($1) and outcome is not null",
          [ids],
        );
        progress(count);
        if (count === ids.length) return;
        if (performance.now() > end) throw new Error(`${count} of ${ids.length} sessions ended in time`);
        await sleep(POLL_MS);
      }
    },
    /** Resolves when so much work fulfils the condition. */
    async until(condition, wanted, timeoutMs) {
      const end = performance.now() + timeoutMs;
      for (;;) {
        const { count } = await one(`select count(*)::int as count from troupe.work where ${condition}`);
        if (count === wanted) return;
        if (performance.now() > end) throw new Error(`${count} of ${wanted} where ${condition}`);
        await sleep(POLL_MS);
      }
    },
    /** Resolves when the engine has nothing left to do. */
    async rested() {
      const end = performance.now() + REST_MS;
      const open = "select 1 from dbos.workflow_status where status in ('PENDING', 'ENQUEUED')";
      while ((await database.query(open)).count > 0) {
        if (performance.now() > end) throw new Error("the engine did not come to rest");
        await sleep(POLL_MS);
      }
    },
    async violations(ledger) {
      return parts.check(await parts.readRecord({ queries: database, ledger, workerIds }));
    },
    counters: () => counters(one),
    /** CPU time of the server and of all workers so far, in milliseconds. */
    async cpu() {
      const { folder: data } = await one("select setting as folder from pg_settings where name = 'data_directory'");
      const postmaster = Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
      const server = cpuOf(postmaster) + sum(childrenOf(postmaster).map((pid) => cpuOf(pid)));
      return { server, workers: sum(workers.map(({ used, child }) => used ?? cpuOf(child.pid))) };
    },
    /** Of one worker: its connections on average, and the most memory that any of them used. */
    async usage() {
      const alive = workers.filter(({ used }) => used === undefined);
      // The bench itself submits with connections of the first two names.
      const { count } = await one(
        `select count(*)::int as count from pg_stat_activity
         where usename = 'troupe' and application_name not in ('troupe', 'dbos_transact_local_')`,
      );
      const peakBytes = Math.max(...alive.map((worker) => memoryOf(worker, "VmHWM")));
      return { connections: count / alive.length, peakBytes };
    },
    kill(worker) {
      worker.used = cpuOf(worker.child.pid);
      worker.child.kill("SIGKILL");
    },
    async close() {
      for (const { child, ended } of workers) {
        child.kill("SIGKILL");
        await ended;
      }
      await engine.close().catch(() => undefined);
      for (const open of [work, database]) await open.close().catch(() => undefined);
      process.off("exit", abandon);
      server.remove();
    },
  };
  return stage;
}

async function startWorker({ name, folder, environment, url, children, given }) {
  const home = join(folder, name);
  mkdirSync(home, { recursive: true });
  const child = spawn(process.execPath, [launcher, "worker", "--lease", String(LEASE_SECONDS), ...given], {
    cwd: home,
    env: { PATH: process.env.PATH, ...environment, HOME: home, TROUPE_HOME: home, TROUPE_DATABASE_URL: url },
    stdio: ["ignore", "ignore", "pipe"],
  });
  children.push(child);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    said = (said + text).slice(-4000);
  });
  const end = performance.now() + START_MS;
  for (;;) {
    const [, id] = /worker (\S+) takes jobs/.exec(said) ?? [];
    if (id) return { id, child, ended };
    if (child.exitCode !== null || performance.now() > end) {
      child.kill("SIGKILL");
      throw new Error(`worker ${name} did not start: ${said}`);
    }
    await sleep(20);
  }
}

/** Returns the counters of the server, without the queries of the bench. */
async function counters(one) {
  const row = await one(
    `select coalesce(sum(calls), 0)::float8 as statements, coalesce(sum(total_exec_time), 0)::float8 as "statementMs",
            coalesce(sum(calls) filter (where query ilike '%insert into troupe.event%'), 0)::float8 as appends,
            coalesce(sum(calls) filter (where query ~* '^(commit|begin|rollback|start transaction)'), 0)::float8 as frames,
            coalesce(sum(calls) filter (where query like '%dbos%'), 0)::float8 as engine,
            coalesce(sum(calls) filter (where query ~* '^commit'), 0)::float8 as commits,
            (pg_current_wal_lsn() - '0/0')::float8 as wal
     from pg_stat_statements where userid = 'troupe'::regrole`,
  );
  return { ...row, at: performance.now() };
}

/** User and system time of a process and of the children it has waited for, in milliseconds. */
export function cpuOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return sum(fields.slice(11, 15).map(Number)) * 10;
  } catch {
    return 0; // It has just ended.
  }
}

function childrenOf(pid) {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1").replace(/^.*\) /s, "");
      return Number(stat.split(" ")[1]) === pid;
    } catch {
      return false;
    }
  });
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
