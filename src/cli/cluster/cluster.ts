/** `troupe cluster`: shows the workers, queues and work of a database. This folder has the commands for many machines. */

import { type Cluster, openCluster } from "../../runtime/cluster/cluster.ts";
import { listWork, noteEnd } from "../../runtime/cluster/work.ts";
import { type Arguments, unknownSubcommand, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { say } from "../output/say.ts";
import { databaseUrl } from "./database-url.ts";
import { budgetCommand, limitCommand } from "./limits.ts";
import { show, type Table } from "./tables.ts";
import { retryCommand, tenantCommand } from "./tenants.ts";

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
      case "limit":
        return await limitCommand(given, cluster);
      case "budget":
        return await budgetCommand(given, cluster);
      case "tenant":
        return await tenantCommand(given, cluster);
      case "retry":
        return await retryCommand(cluster, rest[0]);
      default:
        throw unknownSubcommand("cluster", name, NAMES);
    }
  } finally {
    await cluster.close();
  }
}

const NAMES = ["status", "workers", "queues", "cancel", "retry", "limit", "budget", "tenant"];

async function cancel({ database, engine }: Cluster, id: string | undefined): Promise<ExitCode> {
  if (id === undefined) throw usage("Name the work to cancel: troupe cluster cancel <work id>");
  await engine.cancel(id);
  await noteEnd(database, id, { kind: "aborted", message: "cancelled" });
  say(`work ${id} is cancelled`);
  return exitCodes.done;
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
    state: row.setAside === null ? (row.outcome?.kind ?? states.get(row.id)?.state ?? "unknown") : "set_aside",
    pool: row.pool,
    tenant: row.tenant,
    starts: row.starts,
    worker: row.worker,
    submitted: row.createdAt.toISOString(),
    reason: row.setAside ?? (row.outcome && "message" in row.outcome ? row.outcome.message : null),
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
