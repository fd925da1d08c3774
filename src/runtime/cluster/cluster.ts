/**
 * Sessions that any of several machines may run. This folder combines the store in Postgres, the engine and the runtime:
 * `openCluster` connects, `serveCluster` is a worker, and `submitWork` submits a prompt.
 */

import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { dbosEngine } from "../../engine/dbos-engine.ts";
import type { Engine } from "../../engine/engine.ts";
import { Lease } from "../../engine/lease.ts";
import { type Retention, removeOld } from "../../engine/retention.ts";
import { SharedBudgets } from "../../engine/shared-budgets.ts";
import { SharedRates } from "../../engine/shared-rates.ts";
import { defined } from "../../lib/defined.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { snapshotRules } from "../../session/compaction/condense.ts";
import { type Database, driverPath, openDatabase } from "../../store/postgres/database.ts";
import { checkDatabaseUrl, databaseError } from "../../store/postgres/database-errors.ts";
import { CHANNEL, topics } from "../../store/postgres/notifications.ts";
import { postgresStore, type Worker } from "../../store/postgres/postgres.ts";
import { checkSchema, createTables, migrate } from "../../store/postgres/schema.ts";
import { checkSessionId } from "../../store/session-id.ts";
import { MARK_NAME } from "../../tools/shell/process/family.ts";
import { PROCESS_MARK } from "../../tools/shell/process/watchdog.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import { version } from "../version.ts";
import { setAside } from "./activation.ts";
import { Claims } from "./claims.ts";
import { followDraining } from "./draining.ts";
import { dueWork, unqueuedWork } from "./due-work.ts";
import { LeaseGuard } from "./lease-guard.ts";
import { readMeasures } from "./measures.ts";
import { addAnswer } from "./requests.ts";
import { ACTIVATION_SEPARATOR, type Submit, workIdOf, workRunner } from "./run-work.ts";
import { sharedLimitsOf } from "./shared-limits.ts";
import {
  abortReason,
  addWork,
  findWork,
  lastWork,
  noteAbort,
  type OnLoss,
  reopen,
  type WorkRequest,
  type WorkRow,
} from "./work.ts";

export interface ClusterOptions {
  readonly url: string;
  readonly pool?: string;
}

/** A connection that submits and watches work. */
export interface Cluster {
  readonly database: Database;
  readonly engine: Engine;
  close(): Promise<void>;
}

const DEFAULT_POOL = "default";
const PARK_MS = 5_000;
/** Time to end sessions that are left to other workers. */
const GIVE_UP_MS = 20_000;
/** Time to store the usage of the last calls when a worker stops. */
const FLUSH_MS = 10_000;

/** `creates`: creates the tables if there are none. */
export async function openCluster({
  url,
  connections = 2,
  creates = false,
}: ClusterOptions & { readonly connections?: number; readonly creates?: boolean }): Promise<Cluster> {
  checkDatabaseUrl(url);
  const database = await openDatabase({ url, connections });
  try {
    if (creates) await createTables(database);
    await checkSchema(database);
    const engine = await dbosEngine({ url, queries: database, wakes: wakesOf(database) });
    return {
      database,
      engine,
      async close() {
        await engine.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw databaseError(error, url);
  }
}

const wakesOf = ({ notifications, query }: Database) => ({
  send: async (pool: string) => void (await query("select pg_notify($1, $2)", [CHANNEL, topics.queue(pool)])),
  subscribe: (pool: string, listener: () => void) => notifications.subscribe(topics.queue(pool), listener),
});

/** Runs work on the database, and words its errors for the user. */
export async function wordErrors<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw databaseError(error, url);
  }
}

/**
 * Stores the work, then hands it to the engine. If this process ends in between, a worker hands it to the engine. Calling
 * it again with the same id is safe. A further message of a session uses the repository, the pool and the tenant of the
 * previous one unless it names others.
 */
export async function submitWork(
  { database, engine }: Cluster,
  what: {
    readonly id: string;
    readonly sessionId: string;
    readonly tenant?: string;
    readonly pool?: string;
    readonly onLoss: OnLoss;
    readonly request: WorkRequest;
  },
): Promise<void> {
  const { id, sessionId, onLoss } = what;
  checkSessionId(sessionId);
  const before = await lastWork(database, sessionId);
  const pool = what.pool ?? before?.pool ?? DEFAULT_POOL;
  const tenant = what.tenant ?? before?.tenant ?? (await roleTenant(database)) ?? "default";
  const request = { ...repositoryOf(before?.request), ...what.request };
  try {
    await addWork(database, { id, sessionId, tenant, pool, onLoss, request });
    await engine.submit({ id, sessionId, pool, tenant });
  } catch (error) {
    throw error instanceof Error && "code" in error && error.code === NO_RIGHT
      ? mayNotSubmit(tenant, pool, error)
      : error;
  }
}

/** A session stays in its repository. */
const repositoryOf = ({ repository, ref }: Partial<WorkRequest> = {}): Pick<WorkRequest, "repository" | "ref"> =>
  defined({ repository, ref });

const NO_RIGHT = "42501";

const mayNotSubmit = (tenant: string, pool: string, cause: Error): TroupeError =>
  new TroupeError("usage", `This database role may not submit jobs for tenant ${tenant} to pool ${pool}.`, {
    hint: "Name another --tenant or --pool, or ask the operator: troupe cluster tenant set <tenant> --role <role> --pool <pool>.",
    cause,
  });

/** Returns the tenant that the database role belongs to, if it is the role of a tenant. */
export async function roleTenant(database: Database): Promise<string | undefined> {
  const { rows } = await database.query<{ tenant: string | null }>("select troupe.my_tenant() as tenant");
  return rows[0]?.tenant ?? undefined;
}

/** Hands another activation of this work to the engine. Repeating it for the same reason is safe. */
async function submitAgain(engine: Engine, work: WorkRow, reason: string): Promise<void> {
  const { id, sessionId, pool, tenant } = work;
  await engine.submit({ id: `${id}${ACTIVATION_SEPARATOR}${reason}`, sessionId, pool, tenant });
}

/** Answers a request of a session, wherever it runs. Returns false unless this is the first response to an open request. */
export async function answerRequest(
  { database, engine }: Cluster,
  given: Parameters<typeof addAnswer>[1],
): Promise<boolean> {
  const workId = await addAnswer(database, given);
  if (workId === undefined) return false;
  const work = await findWork(database, workId);
  // If this process ends here, a worker finds the answer and submits the activation.
  if (work?.waitingAt != null) await submitAgain(engine, work, given.requestId);
  return true;
}

/** Submits activations where the process that had to do so was lost. */
async function resumeDue({ database, engine }: Pick<Cluster, "database" | "engine">): Promise<void> {
  for (const { work, reason } of await dueWork(database)) await submitAgain(engine, work, reason);
}

/** Ends work, whether it runs, waits or is queued. Returns false if it has ended already. */
export async function abortWork(
  { database, engine }: Pick<Cluster, "database" | "engine">,
  workId: string,
): Promise<boolean> {
  const asked = await noteAbort(database, workId);
  for (const work of asked) if (work.waitingAt !== null) await submitAgain(engine, work, abortReason(work));
  return asked.some(({ id }) => id === workId);
}

/** Runs work again that failed or was set aside. Returns its id. */
export async function retryWork({ database, engine }: Cluster, workId: string): Promise<string> {
  const row = await findWork(database, workId);
  if (!row) throw new TroupeError("usage", `There is no job ${workId}.`, { hint: "See troupe cluster status." });
  if (!(await reopen(database, workId))) {
    throw new TroupeError("usage", `Job ${workId} is not suspended and has not failed.`);
  }
  const { id, sessionId, pool, tenant } = row;
  await engine.retry({ id, sessionId, pool, tenant });
  return id;
}

export interface WorkerOptions extends ClusterOptions {
  readonly runtime: Omit<RuntimeOptions, "store" | "tools">;
  readonly home: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Time without an answer after which a session that waits for a person is parked (default: 5 s). */
  readonly parkMs?: number;
  /** True: people may allow calls that no rule decides. */
  readonly asks: boolean;
  /** Folders whose repositories may be named by path. */
  readonly localFolders: readonly string[];
  /** Serves only this tenant, for the whole life of the process. */
  readonly tenant?: string;
  /** When old rows are removed. */
  readonly retention: Retention;
  /** Refuses to start where commands cannot run in a sandbox. */
  readonly requiresSandbox?: boolean;
  /** Returns the request for a session in this folder. */
  request(work: WorkRow, cwd: string): SessionRequest;
  /** Reports what happens, one line at a time. */
  report(line: string): void;
}

export interface ServingWorker {
  readonly id: string;
  /** False when other workers may take over its sessions. */
  readonly isAlive: () => boolean;
  readonly active: () => number;
  /** Takes no new work, waits for the sessions that run, leaves the others to other workers, and closes everything. */
  stop(timeoutMs: number): Promise<void>;
}

export async function serveCluster(options: WorkerOptions): Promise<ServingWorker> {
  const { url, pool = DEFAULT_POOL, concurrency, leaseMs, tenant, request, report } = options;
  const worker: Worker = { id: `${hostname()}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`, ...here() };
  const database = await openMigrated(url, `troupe worker ${worker.id}`);
  const row = { ...worker, pool, version, concurrency, ...defined({ tenant }) };
  const commandMark = `${MARK_NAME}=${PROCESS_MARK}.`;
  const driver = driverPath();
  const lease = new Lease({ queries: database, url, worker: row, leaseMs, commandMark, driver, report });
  const claims = new Claims();
  const store = postgresStore({
    ...{ database, folder: join(options.home, "session-state"), disk: nodeDisk, worker, snapshots: snapshotRules },
    claim: (sessionId) => claims.of(sessionId),
    tenantOf: (sessionId) => claims.of(sessionId)?.tenant,
    report: options.report,
  });
  const shared = { queries: database, workerId: worker.id, leaseMs };
  const budgets = new SharedBudgets(shared);
  const guard = new LeaseGuard({ lease, queries: database, report });
  const runtime = createRuntime({
    ...{ ...options.runtime, home: options.home, store },
    sharedLimits: sharedLimitsOf(new SharedRates(shared)),
    instance: { id: worker.id, readings: () => readMeasures(database) },
  });
  hideAddress(url, runtime);
  if (options.requiresSandbox) await checkSandbox(runtime, database);
  const run = workRunner({
    ...{ database, runtime, store, budgets, guard, workerId: worker.id, claims, tenant, request, report },
    parkMs: options.parkMs ?? PARK_MS,
    asks: options.asks,
    engine: () => engine,
    submit: (work, reason) => submitAgain(engine, work, reason),
    // Not in the state folder, which tools may not reach.
    checkout: { folder: `${resolve(options.home)}-work`, disk: nodeDisk, localFolders: options.localFolders },
  });
  await lease.start();
  const engine = await dbosEngine({
    ...{ url, queries: database, workerId: worker.id, pool, concurrency, leaseMs, wakes: wakesOf(database) },
    ...defined({ tenant }),
  });
  // One after the other: workers that create the tables of DBOS at the same time would end in a deadlock.
  const serving = await alone(database, "start", () => engine.serve(run));
  const stopDraining = followDraining({ database, workerId: worker.id, lease, serving, report });
  const sweeping = setInterval(() => void sweep({ database, engine }, options.retention).catch(ignore), leaseMs);
  return {
    id: worker.id,
    isAlive: () => lease.isValid,
    active: () => claims.count,
    async stop(timeoutMs) {
      clearInterval(sweeping);
      await stopDraining();
      await lease.drain().catch(() => undefined);
      await serving.drain(timeoutMs, () => claims.giveUp(GIVE_UP_MS));
      await engine.close();
      await runtime.close();
      await flush(budgets);
      await lease.stop().catch(() => undefined);
      await database.close();
    },
  };
}

async function openMigrated(url: string, name: string): Promise<Database> {
  checkDatabaseUrl(url);
  const database = await openDatabase({ url, connections: 6, name });
  return wordErrors(url, async () => {
    await migrate(database);
    return database;
  }).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
}

async function flush(budgets: SharedBudgets): Promise<void> {
  await Promise.race([budgets.flush(), new Promise((resolve) => setTimeout(resolve, FLUSH_MS).unref())]);
}

/** Removes the address of the database and its password from everything that sessions store. */
function hideAddress(url: string, runtime: Runtime): void {
  runtime.addSecret(url);
  const { password } = new URL(url);
  if (password !== "") runtime.addSecret(decodeURIComponent(password));
}

async function checkSandbox(runtime: Runtime, database: Database): Promise<void> {
  const absence = await runtime.sandboxAbsence();
  if (absence === undefined) return;
  await runtime.close();
  await database.close();
  throw new TroupeError("configuration", `--untrusted needs the sandbox, and there is none: ${absence}`, {
    hint: "Install bubblewrap (apt install bubblewrap), then start the worker again. troupe doctor checks it.",
  });
}

/**
 * Runs `work` in one process at a time. The lock is a row, because DBOS creates indexes in a way that waits for all open
 * transactions, also for those that wait for a lock.
 */
async function alone<T>(database: Database, name: string, work: () => Promise<T>): Promise<T> {
  const take = async (): Promise<boolean> => {
    const { count } = await database.query(
      `insert into troupe.lock as l (name, expires_at) values($1, clock_timestamp() + interval '60 s')
       on conflict (name) do update set expires_at = excluded.expires_at where l.expires_at < clock_timestamp()`,
      [name],
    );
    return count > 0;
  };
  while (!(await take())) await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
  try {
    return await work();
  } finally {
    await database.query("delete from troupe.lock where name = $1", [name]);
  }
}

const LOCK_POLL_MS = 100;

const here = () => ({ host: hostname(), pid: process.pid });

const ignore = (): void => undefined;

/** Does what a worker or a sender that was lost left undone, and removes what is old. */
async function sweep(cluster: Pick<Cluster, "database" | "engine">, retention: Retention): Promise<void> {
  await endGivenUp(cluster);
  await resumeDue(cluster);
  await queueLeft(cluster);
  await removeOld(cluster.database, retention);
}

/** Ends work that the engine gives to no worker any more, so that nobody waits for it. */
async function endGivenUp({ database, engine }: Pick<Cluster, "database" | "engine">): Promise<void> {
  for (const { id, attempts } of await engine.list({ states: ["set_aside"] })) {
    const work = await findWork(database, workIdOf(id));
    if (work?.outcome === null) await setAside(work, attempts, { database, submit: submitterOf(engine) });
  }
}

/** Queues work whose submitter was lost before it did so. Safe to repeat, and while a submitter does the same. */
async function queueLeft({ database, engine }: Pick<Cluster, "database" | "engine">): Promise<void> {
  for (const { id, sessionId, pool, tenant } of await unqueuedWork(database)) {
    const known = (await engine.list({ sessionId })).find((work) => work.id === id);
    if (known?.state === "queued" || known?.state === "running") continue;
    // It ran before if somebody wanted it to be retried.
    await (known ? engine.retry : engine.submit)({ id, sessionId, pool, tenant });
  }
}

const submitterOf =
  (engine: Engine): Submit =>
  (work, reason) =>
    submitAgain(engine, work, reason);
