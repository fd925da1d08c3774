/** `troupe worker`, `troupe submit` and `troupe cluster`: sessions that any of several machines may run. */

import { createServer, type Server } from "node:http";
import { plural } from "../../lib/text.ts";
import {
  type Cluster,
  openCluster,
  type ServingWorker,
  serveCluster,
  submitWork,
} from "../../runtime/cluster/cluster.ts";
import { findWork, listWork, type WorkOutcome, type WorkRow } from "../../runtime/cluster/work.ts";
import { stateRoot } from "../../runtime/home.ts";
import { type Arguments, parse, unknownSubcommand, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { write } from "../output/output.ts";
import { say } from "../output/say.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";

const DRAIN_MS = 600_000;
const POLL_MS = 250;
const DEFAULT_LEASE_SECONDS = 15;
const DEFAULT_CONCURRENCY = 8;

function databaseUrl(given: Arguments): string {
  const url = given.text("database") ?? process.env.TROUPE_DATABASE_URL;
  if (url !== undefined && url !== "") return url;
  throw usage("No database is given.", "Use --database postgres://user@host/name, or set TROUPE_DATABASE_URL.");
}

export async function workerCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const pool = given.text("pool");
  // DBOS makes pg print a deprecation that no user of troupe can act on.
  Object.assign(process, { noDeprecation: true });
  const worker = await serveCluster({
    url: databaseUrl(given),
    ...(pool !== undefined && { pool }),
    concurrency: given.amount("concurrency", "whole") ?? DEFAULT_CONCURRENCY,
    leaseMs: (given.amount("lease", "any") ?? DEFAULT_LEASE_SECONDS) * 1000,
    home: stateRoot(process.env),
    runtime: { environment: process.env, importModule: launcher.importModule },
    request: (work, cwd) => ({ ...sessionRequest(parse(work.request.flags), "json"), cwd, client: { askUser: false } }),
    report: (line) => say(line),
  });
  const health = await healthServer(given, worker);
  say(`worker ${worker.id} takes work${pool === undefined ? "" : ` of pool ${pool}`}; stop it with Ctrl-C or SIGTERM`);
  await new Promise<void>((resolve) => onInterrupt(resolve));
  say(`stopping: waiting for ${plural(worker.active(), "session")}`);
  await worker.stop(DRAIN_MS);
  health?.close();
  return exitCodes.done;
}

/** Answers 200 while the worker's lease is valid, else 503. */
async function healthServer(given: Arguments, worker: ServingWorker): Promise<Server | undefined> {
  const port = given.amount("health-port", "count");
  if (port === undefined) return undefined;
  const server = createServer((request, response) => {
    const isKnown = request.method === "GET" && request.url === "/healthz";
    const status = !isKnown ? 404 : worker.isAlive() ? 200 : 503;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(`${JSON.stringify({ worker: worker.id, alive: worker.isAlive(), active: worker.active() })}\n`);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  return server;
}

export async function submitCommand(given: Arguments): Promise<ExitCode> {
  const prompt = given.text("prompt");
  if (prompt === undefined || prompt.trim() === "") throw usage('Give a prompt: troupe submit -p "<prompt>"');
  const [repository, ref] = [given.text("repo"), given.text("ref")];
  const onLoss = given.choice("on-loss", ["continue", "stop"]) ?? "continue";
  const sessionId = given.text("session-id") ?? crypto.randomUUID();
  const id = crypto.randomUUID();
  const [tenant, pool] = [given.text("tenant"), given.text("pool")];
  const flags = sessionFlags(process.argv.slice(2), given);
  sessionRequest(parse(flags), "json");
  const cluster = await openCluster({ url: databaseUrl(given) });
  try {
    await submitWork(cluster, {
      ...{ id, sessionId, onLoss },
      ...(tenant !== undefined && { tenant }),
      ...(pool !== undefined && { pool }),
      request: { prompt, flags, ...(repository !== undefined && { repository }), ...(ref !== undefined && { ref }) },
    });
    if (!given.has("wait")) {
      await write(given.has("json") ? `${JSON.stringify({ workId: id, sessionId })}\n` : `${sessionId}\n`);
      return exitCodes.done;
    }
    return await report(given, await waitFor(cluster, id), { id, sessionId });
  } finally {
    await cluster.close();
  }
}

/** Flags of `submit` itself, which are not flags of the session. Each takes a value, except the last two. */
const OWN_VALUES = ["prompt", "p", "database", "pool", "repo", "ref", "tenant", "on-loss", "session-id"];
const OWN_SWITCHES = ["wait", "json"];

/** Returns the flags for the session, without the word `submit` and its own flags. */
function sessionFlags(argv: readonly string[], given: Arguments): string[] {
  const flags: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    const name = /^--?([a-z-]+)/.exec(word)?.[1] ?? "";
    if (word.startsWith("-") && OWN_VALUES.includes(name)) {
      if (!word.includes("=")) index++;
      continue;
    }
    if (OWN_SWITCHES.includes(name) && word.startsWith("-")) continue;
    if (!given.words.includes(word)) flags.push(word);
  }
  return flags;
}

async function waitFor({ database }: Cluster, id: string): Promise<WorkRow> {
  for (;;) {
    const row = await findWork(database, id);
    if (row && row.outcome !== null) return row;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function report(
  given: Arguments,
  { outcome }: WorkRow,
  ids: { readonly id: string; readonly sessionId: string },
): Promise<ExitCode> {
  if (given.has("json")) await write(`${JSON.stringify({ workId: ids.id, sessionId: ids.sessionId, outcome })}\n`);
  else if (outcome?.kind === "done") await write(`${outcome.answer}\n`);
  if (outcome?.kind === "done") return exitCodes.done;
  say(`session ${ids.sessionId}: ${describe(outcome)}`);
  return exitCodes.failed;
}

function describe(outcome: WorkOutcome | null): string {
  if (outcome === null) return "no outcome yet";
  if (outcome.kind === "done") return "done";
  if (outcome.kind === "lost") return "the worker was lost, and the work was not continued (--on-loss stop)";
  return `${outcome.kind}: ${outcome.message}`;
}

export async function clusterCommand(given: Arguments): Promise<ExitCode> {
  const [, name = "status", ...rest] = given.words;
  const cluster = await openCluster({ url: databaseUrl(given) });
  try {
    switch (name) {
      case "status":
        return await show(given, {
          workers: await workersOf(cluster),
          work: await worksOf(cluster, given.amount("limit", "whole") ?? 20),
        });
      case "workers":
        return await show(given, { workers: await workersOf(cluster) });
      case "queues":
        return await show(given, { queues: await queuesOf(cluster) });
      case "cancel":
        return await cancel(cluster, rest[0]);
      default:
        throw unknownSubcommand("cluster", name, ["status", "workers", "queues", "cancel"]);
    }
  } finally {
    await cluster.close();
  }
}

async function cancel({ engine }: Cluster, id: string | undefined): Promise<ExitCode> {
  if (id === undefined) throw usage("Name the work to cancel: troupe cluster cancel <work id>");
  await engine.cancel(id);
  say(`work ${id} is cancelled`);
  return exitCodes.done;
}

type Table = readonly Readonly<Record<string, string | number | null>>[];

/** Prints each table with its column names, or everything as one JSON object. */
async function show(given: Arguments, tables: Readonly<Record<string, Table>>): Promise<ExitCode> {
  if (given.has("json")) {
    await write(`${JSON.stringify(tables)}\n`);
    return exitCodes.done;
  }
  for (const [name, rows] of Object.entries(tables)) {
    if (rows.length === 0) await write(`no ${name}\n`);
    else await write(`${lines(rows).join("\n")}\n`);
  }
  return exitCodes.done;
}

function lines(rows: Table): string[] {
  const names = Object.keys(rows[0] ?? {});
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? "–")))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

async function workersOf({ database }: Cluster): Promise<Table> {
  const { rows } = await database.query<Record<string, string | number>>(
    `select w.id as worker, w.host, w.pid, w.pool, w.version,
            case when w.expires_at < clock_timestamp() then 'lost' when w.draining then 'draining' else 'alive' end as state,
            (select count(*)::int from troupe.session s where s.holder = w.id) as sessions, w.concurrency
     from troupe.worker w order by w.started_at`,
  );
  return rows;
}

async function worksOf({ database, engine }: Cluster, limit: number): Promise<Table> {
  const states = new Map((await engine.list({ limit: 10_000 })).map((work) => [work.id, work]));
  return (await listWork(database, limit)).map((row) => ({
    work: row.id,
    session: row.sessionId,
    state: row.outcome?.kind ?? states.get(row.id)?.state ?? "unknown",
    pool: row.pool,
    tenant: row.tenant,
    starts: row.starts,
    worker: row.worker,
    submitted: row.createdAt.toISOString(),
  }));
}

async function queuesOf({ database, engine }: Cluster): Promise<Table> {
  const waiting = new Set((await engine.list({ states: ["queued"], limit: 100_000 })).map(({ id }) => id));
  const running = new Set((await engine.list({ states: ["running"], limit: 100_000 })).map(({ id }) => id));
  const counts = new Map<string, { pool: string; tenant: string; waiting: number; running: number }>();
  for (const { id, pool, tenant } of await listWork(database, 100_000)) {
    if (!waiting.has(id) && !running.has(id)) continue;
    const count = counts.get(`${pool}/${tenant}`) ?? { pool, tenant, waiting: 0, running: 0 };
    if (waiting.has(id)) count.waiting++;
    else count.running++;
    counts.set(`${pool}/${tenant}`, count);
  }
  return [...counts.values()];
}
