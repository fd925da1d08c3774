/**
 * The engine on DBOS and Postgres. The only importer of DBOS. One workflow is one activation; a model or tool call is
 * never a step of a workflow.
 *
 * DBOS claims a workflow for one worker and writes a token into its row. The token is the claim: whoever takes a session
 * checks it in the same statement. DBOS does not detect lost workers by itself, so each worker looks for workflows whose
 * worker has no valid lease and lets DBOS recover them.
 */

import type { Queries } from "../lib/queries.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Activation, Claim, Engine, Serving, Work, WorkQuery, WorkState, WorkView } from "./engine.ts";
import { ClaimLost } from "./engine.ts";

export interface DbosEngineOptions {
  readonly url: string;
  readonly queries: Queries;
  /** The worker's id. A process that only submits has none. */
  readonly workerId?: string;
  readonly pool?: string;
  readonly concurrency?: number;
  readonly leaseMs?: number;
  readonly pollMs?: number;
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
/** Another worker takes over at most this long after a lease has expired, plus the time of a poll. */
const MAX_DETECTION_MS = 1_000;

const queueOf = (pool: string): string => `troupe-${pool}`;

export async function dbosEngine(options: DbosEngineOptions): Promise<Engine> {
  const { DBOSClient } = await load(() => import("@dbos-inc/dbos-sdk"));
  const client = await DBOSClient.create({
    systemDatabaseUrl: options.url,
    systemDatabasePoolSize: 2,
    applicationName: APPLICATION,
    logger: quiet,
  });
  return {
    async submit(work) {
      const enqueue = {
        workflowName: WORKFLOW,
        queueName: queueOf(work.pool),
        workflowID: work.id,
        queuePartitionKey: work.sessionId,
      };
      await client.enqueue(enqueue, work);
    },
    serve: (run) => serve(options, run),
    cancel: (workId) => client.cancelWorkflow(workId),
    list: (query) => list(options.queries, query),
    close: () => client.destroy(),
  };
}

async function serve(options: DbosEngineOptions, run: Activation): Promise<Serving> {
  const { workerId = crypto.randomUUID(), pool = "default", concurrency = 8, leaseMs = DEFAULT_LEASE_MS } = options;
  const { DBOS } = await load(() => import("@dbos-inc/dbos-sdk"));
  const { currentOwnerXid } = await load(() => import("@dbos-inc/dbos-sdk/internal/context"));
  const { DBOSExecutor } = await load(() => import("@dbos-inc/dbos-sdk/internal/dbos-executor"));
  const active = new Set<Promise<void>>();
  const activation = async (work: Work): Promise<void> => {
    const claim = claimOf(work, currentOwnerXid(work.id));
    const activity = persist(
      work,
      () => run(work, claim),
      () => isClaimed(options.queries, claim),
    );
    active.add(activity);
    await activity.finally(() => active.delete(activity));
  };
  DBOS.registerWorkflow(activation, { name: WORKFLOW, maxRecoveryAttempts: MAX_RECOVERIES });
  DBOS.setConfig({
    name: APPLICATION,
    systemDatabaseUrl: options.url,
    systemDatabasePoolSize: 6,
    executorID: workerId,
    applicationVersion: CONTRACT_VERSION,
    logger: quiet,
    listenQueues: [queueOf(pool)],
  } as Parameters<typeof DBOS.setConfig>[0]);
  await DBOS.launch();
  await DBOS.registerQueue(queueOf(pool), {
    workerConcurrency: concurrency,
    partitionConcurrency: 1,
    minPollingIntervalMs: options.pollMs ?? 50,
    onConflict: "always_update",
  });
  const recover = async (): Promise<void> => {
    for (const id of await lostWorkers(options.queries, leaseMs)) {
      await DBOSExecutor.globalInstance?.recoverPendingWorkflows([id]);
    }
  };
  // Repeated: a recovery that the database interrupted is made up for by the next one.
  const timer = setInterval(() => void recover().catch(() => undefined), Math.min(leaseMs / 3, MAX_DETECTION_MS));
  return {
    async drain(timeoutMs) {
      clearInterval(timer);
      const { globalInstance } = DBOSExecutor;
      await globalInstance?.deactivateEventReceivers();
      const timeout = new Promise<void>((resolve) => setTimeout(resolve, timeoutMs).unref());
      await Promise.race([Promise.allSettled(active), timeout]);
      await DBOS.shutdown();
    },
  };
}

/**
 * Repeats an activation until it returns: an error would be a final state of the workflow. Throws only if the claim was
 * given to another worker.
 */
async function persist(work: Work, run: () => Promise<void>, isClaimed: () => Promise<boolean>): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
    try {
      return await run();
    } catch (error) {
      if (error instanceof ClaimLost) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      // While the database is away, nothing is known: try again.
      if (!(await isClaimed().catch(() => true))) throw new ClaimLost(work);
    }
  }
}

const CONDITION = `exists (select 1 from dbos.workflow_status d
  where d.workflow_uuid = $1 and d.owner_xid::text = $2 and d.status = 'PENDING' for share)`;

const claimOf = (work: Work, token: string | undefined): Claim => ({
  workId: work.id,
  condition: CONDITION,
  values: [work.id, token ?? ""],
});

/** Whether the worker with this claim may still work on the session. */
export async function isClaimed(queries: Queries, { condition, values }: Claim): Promise<boolean> {
  const { rows } = await queries.query<{ valid: boolean }>(
    `select ${condition.replace(" for share", "")} as valid`,
    values,
  );
  return rows[0]?.valid === true;
}

/** Returns workers with pending workflows and no valid lease. Judges nobody right after the server has started. */
async function lostWorkers(queries: Queries, leaseMs: number): Promise<readonly string[]> {
  const { rows } = await queries.query<{ id: string }>(
    `select distinct s.executor_id as id from dbos.workflow_status s
     where s.status = 'PENDING' and s.name = $2
       and not exists (select 1 from troupe.worker w where w.id = s.executor_id and w.expires_at > clock_timestamp())
       and clock_timestamp() > pg_postmaster_start_time() + 2 * $1::float * interval '1 ms'`,
    [leaseMs, WORKFLOW],
  );
  return rows.map(({ id }) => id);
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
  const { rows } = await queries.query<StatusRow>(
    `select workflow_uuid as id, queue_partition_key as session, queue_name as queue, status, executor_id as worker,
            recovery_attempts::text as attempts, created_at::text as created, updated_at::text as updated
     from dbos.workflow_status where name = $1 and status = any($2) and ($3::text is null or queue_partition_key = $3)
     order by created_at desc limit $4`,
    [WORKFLOW, wanted, query.sessionId ?? null, query.limit ?? 1_000],
  );
  return rows.map((row) => ({
    id: row.id,
    sessionId: row.session ?? "",
    pool: (row.queue ?? "").replace(/^troupe-/, ""),
    state: states[row.status] ?? "failed",
    ...(row.worker ? { worker: row.worker } : {}),
    attempts: Number(row.attempts ?? 0),
    createdAt: Number(row.created),
    updatedAt: Number(row.updated),
  }));
}

const ignore = (): void => undefined;
const quiet = { info: ignore, debug: ignore, warn: ignore, error: ignore };

async function load<T>(importer: () => Promise<T>): Promise<T> {
  try {
    return await importer();
  } catch (error) {
    throw new TroupeError("usage", "The package @dbos-inc/dbos-sdk is not installed, so no work can be distributed.", {
      hint: "Install it beside troupe: npm install @dbos-inc/dbos-sdk@5.3.0 pg@8",
      cause: error,
    });
  }
}
