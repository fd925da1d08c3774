/**
 * The engine on DBOS and Postgres. Only this file and `dbos-internals.ts` import DBOS. One workflow is one activation; a model or tool call is
 * never a step of a workflow.
 *
 * DBOS claims a workflow for one worker and writes a token into its row. The token is the claim: whoever takes a session
 * checks it in the same statement. DBOS does not detect lost workers by itself, so each worker looks for workflows whose
 * worker has no valid lease and lets DBOS recover them.
 */

import type { Queries } from "../lib/queries.ts";
import { withServerTimeouts } from "../lib/server-timeouts.ts";
import { TroupeError } from "../protocol/errors.ts";
import { DBOS_VERSION, dbosInternals } from "./dbos-internals.ts";
import type { Claim, Engine, EngineWorker, RunActivation, Work, WorkQuery, WorkState, WorkView } from "./engine.ts";
import { ClaimLost } from "./engine.ts";
import { claimKey, giveBack, recovery, type WorkflowClaim } from "./recovery.ts";

export interface DbosEngineOptions {
  readonly url: string;
  readonly queries: Queries;
  /** The worker's id. A process that only submits has none. */
  readonly workerId?: string;
  readonly pool?: string;
  /** Takes only this tenant's work. */
  readonly tenant?: string;
  readonly concurrency?: number;
  readonly leaseMs?: number;
  /** Interval in which free slots ask for work (default: 100). */
  readonly pollMs?: number;
  /** Wakes the workers of a pool to look for work that waits for a slot. */
  readonly wakes?: {
    send(pool: string): Promise<void>;
    subscribe(pool: string, listener: () => void): () => void;
  };
}

const WORKFLOW = "troupe-activation";
const APPLICATION = "troupe";
/** Recovery is limited to workers of the same version of this contract. */
const CONTRACT_VERSION = "1";
/** An activation that loses its worker this often is set aside. */
const MAX_RECOVERIES = 20;
const FIRST_PAUSE_MS = 200;
const LAST_PAUSE_MS = 5_000;
const DEFAULT_LEASE_MS = 15_000;
/** An idle worker makes one transaction for each poll, and about seven more in a second. */
const DEFAULT_POLL_MS = 100;
/** Another worker takes over at most this long after a lease has expired, plus the time of a poll. */
const MAX_DETECTION_MS = 1_000;

/**
 * Poll interval for work that waits for a slot, in case the process that should look was lost. Submitters and
 * ends of activations look at once.
 */
const DISPATCH_MS = 1_000;
/** Poll interval at the clock. */
const CLOCK_MS = 1_000;

const queueOf = (pool: string, tenant?: string): string => `troupe-${pool}${tenant === undefined ? "" : `@${tenant}`}`;

/** Work as the engine hands it out. The attempt distinguishes workflows of work that was retried. */
interface DispatchedWork extends Work {
  readonly attempt?: number;
}

const workflowOf = ({ id, attempt = 0 }: DispatchedWork): string => (attempt === 0 ? id : `${id}#${attempt}`);

export async function dbosEngine(options: DbosEngineOptions): Promise<Engine> {
  const { DBOSClient } = await load(() => import("@dbos-inc/dbos-sdk"));
  const { queries } = options;
  let connecting: ReturnType<typeof DBOSClient.create> | undefined;
  // Connected at the first use: the role of a tenant may submit, but not read the engine's tables.
  const client = (): ReturnType<typeof DBOSClient.create> => {
    connecting ??= DBOSClient.create({
      systemDatabaseUrl: withServerTimeouts(options.url),
      systemDatabasePoolSize: 2,
      applicationName: APPLICATION,
      logger: quiet,
    });
    return connecting;
  };
  const dispatch = (pool: string): Promise<void> => dispatchWaiting(pool, queries, client);
  const enqueue = async (work: Work, attempt: number): Promise<void> => {
    await queries.query(
      `insert into troupe.queue(work_id, session_id, tenant, pool${attempt > 0 ? ", attempt" : ""})
       values($1, $2, $3, $4${attempt > 0 ? ", $5" : ""}) on conflict do nothing`,
      [work.id, work.sessionId, work.tenant ?? "default", work.pool, ...(attempt > 0 ? [attempt] : [])],
    );
    // Workers look, too: this only saves time. The role of a tenant may not look itself.
    await dispatch(work.pool).catch(() => options.wakes?.send(work.pool).catch(ignore));
  };
  return {
    submit: (work) => enqueue(work, 0),
    serve: (run) => serve(options, run, () => dispatch(options.pool ?? "default")),
    async cancel(workId) {
      const { rows } = await queries.query("delete from troupe.queue where work_id = $1 returning 1", [workId]);
      const workflows = await workflowsOf(queries, workId);
      if (workflows.length === 0 && rows.length > 0) return;
      await (await client()).cancelWorkflow(workflows[0] ?? workId);
    },
    async retry(work) {
      await queries.query("delete from troupe.queue where work_id = $1", [work.id]);
      await enqueue(work, (await workflowsOf(queries, work.id)).length);
    },
    list: (query) => list(queries, query),
    close: async () => (await connecting)?.destroy(),
  };
}

/** Moves work for which a slot is free to the engine. Safe to repeat and to be interrupted. */
async function dispatchWaiting(
  pool: string,
  queries: Queries,
  client: () => Promise<{ enqueue(options: EnqueueOptions, work: DispatchedWork): Promise<unknown> }>,
): Promise<void> {
  const { rows } = await queries.query<DispatchRow>("select * from troupe.dispatch($1)", [pool]);
  for (const { work_id: id, session_id: sessionId, tenant, attempt, bound } of rows) {
    const work = { id, sessionId, pool, tenant, ...(attempt > 0 && { attempt }) };
    await (await client()).enqueue(
      {
        workflowName: WORKFLOW,
        queueName: queueOf(pool, bound ? tenant : undefined),
        workflowID: workflowOf(work),
        queuePartitionKey: sessionId,
      },
      work,
    );
  }
}

interface DispatchRow {
  readonly work_id: string;
  readonly session_id: string;
  readonly tenant: string;
  readonly attempt: number;
  readonly bound: boolean;
}

interface EnqueueOptions {
  readonly workflowName: string;
  readonly queueName: string;
  readonly workflowID: string;
  readonly queuePartitionKey: string;
}

/** Returns the workflows of a piece of work, the newest first. */
async function workflowsOf(queries: Queries, workId: string): Promise<readonly string[]> {
  const { rows } = await queries.query<{ id: string }>(
    `select workflow_uuid as id from dbos.workflow_status
     where workflow_uuid = $1 or starts_with(workflow_uuid, $1 || '#') order by created_at desc`,
    [workId],
  );
  return rows.map(({ id }) => id);
}

async function serve(
  options: DbosEngineOptions,
  run: RunActivation,
  dispatch: () => Promise<void>,
): Promise<EngineWorker> {
  const { workerId = crypto.randomUUID(), pool = "default", concurrency = 8, leaseMs = DEFAULT_LEASE_MS } = options;
  const { DBOS } = await load(() => import("@dbos-inc/dbos-sdk"));
  const internals = await dbosInternals();
  const { currentOwnerXid, DBOSExecutor } = internals;
  const queue = queueOf(pool, options.tenant);
  /** Running activations, by claim. */
  const active: ActiveClaims = new Map();
  const look = (): void => void dispatch().catch(() => undefined);
  const activation = async (work: DispatchedWork): Promise<void> => {
    const workflow = workflowOf(work);
    const token = currentOwnerXid(workflow) ?? "";
    const claim = claimOf(work, token);
    const key = claimKey({ workflow, token });
    const activity = persist(
      work,
      () => run(work, claim),
      () => isClaimed(options.queries, claim),
    );
    active.set(key, { workflow, token, activity });
    await activity.finally(() => active.delete(key));
    await leaveQueue(options.queries, work).then(look, ignore);
  };
  DBOS.registerWorkflow(activation, { name: WORKFLOW, maxRecoveryAttempts: MAX_RECOVERIES });
  DBOS.setConfig(settingsOf(options.url, workerId, queue) as Parameters<typeof DBOS.setConfig>[0]);
  await DBOS.launch();
  await DBOS.registerQueue(queue, {
    workerConcurrency: concurrency,
    partitionConcurrency: 1,
    minPollingIntervalMs: options.pollMs ?? DEFAULT_POLL_MS,
    onConflict: "always_update",
  });
  const recover = recovery(options.queries, {
    ...{ workerId, leaseMs, workflow: WORKFLOW },
    isRunning: (claim) => active.has(claimKey(claim)),
    recover: async (lost) => void (await DBOSExecutor.globalInstance?.recoverPendingWorkflows([lost])),
  });
  const unsubscribe = options.wakes?.subscribe(pool, look);
  look();
  // Repeated: a recovery that the database interrupted is made up for by the next one.
  const detectMs = Math.min(leaseMs / 3, MAX_DETECTION_MS);
  const polling = pollingOf(queue, internals);
  const timers = [setInterval(() => void recover().catch(ignore), detectMs), setInterval(look, DISPATCH_MS)];
  return {
    ...polling,
    async drain(timeoutMs, giveUp) {
      for (const timer of timers) clearInterval(timer);
      unsubscribe?.();
      await polling.end();
      await settled(active, timeoutMs);
      if (active.size > 0 && (await giveUp?.())) await leave(active, options.queries, workerId);
      await DBOS.shutdown();
    },
  };
}

type ActiveClaims = Map<string, WorkflowClaim & { readonly activity: Promise<void> }>;

/** Gives the claims of activations back that do nothing more. They end when they notice. */
async function leave(active: ActiveClaims, queries: Queries, workerId: string): Promise<void> {
  await giveBack(queries, workerId, [...active.values()]).catch(ignore);
  await settled(active, LAST_PAUSE_MS);
}

/** Waits for the activations that run, at most this long. */
async function settled(active: ActiveClaims, timeoutMs: number): Promise<void> {
  const timeout = new Promise<void>((resolve) => setTimeout(resolve, timeoutMs).unref());
  await Promise.race([Promise.allSettled([...active.values()].map(({ activity }) => activity)), timeout]);
}

const settingsOf = (url: string, workerId: string, queue: string) => ({
  name: APPLICATION,
  systemDatabaseUrl: withServerTimeouts(url),
  systemDatabasePoolSize: 6,
  executorID: workerId,
  applicationVersion: CONTRACT_VERSION,
  logger: quiet,
  listenQueues: [queue],
});

/** Stops and starts the loop that asks for work. */
function pollingOf(queue: string, { DBOSExecutor, wfQueueRunner }: Awaited<ReturnType<typeof dbosInternals>>) {
  let polling: Promise<void> | undefined;
  let isPaused = false;
  let seenAt = Date.now();
  const stop = async (): Promise<void> => {
    await DBOSExecutor.globalInstance?.deactivateEventReceivers();
    await polling;
  };
  const start = (): void => {
    const { globalInstance } = DBOSExecutor;
    if (globalInstance) polling = wfQueueRunner.dispatchLoop(globalInstance, [queue]);
  };
  /** DBOS plans the next poll by the clock. After a step back it would not ask until the clock is there again. */
  const checkClock = async (): Promise<void> => {
    const before = seenAt;
    seenAt = Date.now();
    if (seenAt >= before || isPaused) return;
    await stop();
    if (!isPaused) start();
  };
  const timer = setInterval(() => void checkClock().catch(ignore), CLOCK_MS);
  const pause = (): Promise<void> => {
    isPaused = true;
    return stop();
  };
  return {
    pause,
    async resume(): Promise<void> {
      isPaused = false;
      start();
    },
    end(): Promise<void> {
      clearInterval(timer);
      return pause();
    },
  };
}

/** Frees the slot at once. Without it the next look would, when it finds that the workflow has ended. */
async function leaveQueue(queries: Queries, { id, attempt = 0 }: DispatchedWork): Promise<void> {
  await queries.query("delete from troupe.queue where work_id = $1 and attempt = $2", [id, attempt]);
}

/**
 * Repeats an activation until it returns: an error would be a final state of the workflow. Throws only if the claim was
 * given to another worker.
 */
async function persist(work: Work, run: () => Promise<void>, isClaimed: () => Promise<boolean>): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
    try {
      return await run();
    } catch {
      // Also after a `ClaimLost`: it ends the workflow, so only the database decides that.
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      // While the database is unreachable, the state is unknown: try again.
      if (!(await isClaimed().catch(() => true))) throw new ClaimLost(work);
    }
  }
}

const CONDITION = `exists (select 1 from dbos.workflow_status d
  where d.workflow_uuid = $1 and d.owner_xid::text = $2 and d.status = 'PENDING' for share)`;

const claimOf = (work: DispatchedWork, token: string): Claim => ({
  workId: work.id,
  condition: CONDITION,
  values: [workflowOf(work), token],
});

/** Whether the worker with this claim may still work on the session. */
export async function isClaimed(queries: Queries, { condition, values }: Claim): Promise<boolean> {
  const { rows } = await queries.query<{ valid: boolean }>(
    `select ${condition.replace(" for share", "")} as valid`,
    values,
  );
  return rows[0]?.valid === true;
}

const states: Readonly<Record<string, WorkState>> = {
  ENQUEUED: "queued",
  DELAYED: "queued",
  PENDING: "running",
  SUCCESS: "done",
  ERROR: "failed",
  CANCELLED: "cancelled",
  MAX_RECOVERY_ATTEMPTS_EXCEEDED: "set_aside",
};

interface StatusRow {
  readonly id: string;
  readonly session: string | null;
  readonly queue: string | null;
  readonly status: string;
  readonly worker: string | null;
  readonly attempts: string | null;
  readonly created: string;
  readonly updated: string;
}

async function list(queries: Queries, query: WorkQuery = {}): Promise<readonly WorkView[]> {
  const wanted = Object.keys(states).filter((key) => {
    const state = states[key];
    return state !== undefined && (query.states?.includes(state) ?? true);
  });
  const values = [WORKFLOW, wanted, query.sessionId ?? null, query.limit ?? 1_000];
  const read = (tables: readonly string[]) =>
    queries.query<StatusRow>(
      `select s.* from (${tables.join(" union all ")}) s
       where s.status = any($2) and s.name = $1 and ($3::text is null or s.session = $3)
       order by s.created desc, s.id limit $4`,
      values,
    );
  // The first worker creates the tables of DBOS.
  const { rows } = await read([DISPATCHED, WAITING]).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === NO_TABLE) return read([WAITING]);
    throw error;
  });
  return newestOf(rows).map((row) => ({
    id: row.id,
    sessionId: row.session ?? "",
    pool: (row.queue ?? "").replace(/^troupe-|@.*$/g, ""),
    state: states[row.status] ?? "failed",
    ...(row.worker ? { worker: row.worker } : {}),
    attempts: Number(row.attempts ?? 0),
    createdAt: Number(row.created),
    updatedAt: Number(row.updated),
  }));
}

const NO_TABLE = "42P01";

const DISPATCHED = `
  select split_part(workflow_uuid, '#', 1) as id, queue_partition_key as session, queue_name as queue, status, name,
         executor_id as worker, recovery_attempts::text as attempts, created_at as created, updated_at as updated
  from dbos.workflow_status`;

const WAITING = `
  select work_id as id, session_id as session, 'troupe-' || pool as queue, 'ENQUEUED' as status, '${WORKFLOW}' as name,
         null as worker, '0' as attempts, ms as created, ms as updated
  from (select q.*, (extract(epoch from enqueued_at) * 1000)::bigint as ms from troupe.queue q) q
  where dispatched_at is null`;

/** Keeps the first row of each piece of work: one that was retried has several. */
const newestOf = (rows: readonly StatusRow[]): readonly StatusRow[] =>
  [...new Map([...rows].reverse().map((row) => [row.id, row])).values()].reverse();

const ignore = (): void => undefined;
const quiet = { info: ignore, debug: ignore, warn: ignore, error: ignore };

async function load<T>(importer: () => Promise<T>): Promise<T> {
  try {
    return await importer();
  } catch (error) {
    throw new TroupeError("usage", "The package @dbos-inc/dbos-sdk is not installed, so no jobs can be distributed.", {
      hint: `Install it where troupe is installed: npm install @dbos-inc/dbos-sdk@${DBOS_VERSION} pg@8`,
      cause: error,
    });
  }
}
