/** Finds workflows that nobody runs: those of lost workers, and claims of this worker that never began. */

import type { Queries } from "../lib/queries.ts";

export interface RecoveryOptions {
  readonly workerId: string;
  readonly leaseMs: number;
  /** Name of the workflows. */
  readonly workflow: string;
  /** Whether the claim with this token runs in this process. */
  isRunning(token: string): boolean;
  /** Lets DBOS recover the workflows of a lost worker. */
  recover(workerId: string): Promise<void>;
}

/**
 * Returns a function that looks once and recovers what it finds. It judges no other worker right after the server has
 * started, and for one lease after this worker could not renew its own: then the database may be what failed, for all
 * workers.
 */
export function recovery(queries: Queries, options: RecoveryOptions): () => Promise<void> {
  const { workerId, leaseMs, workflow } = options;
  let unsureAt = Number.NEGATIVE_INFINITY;
  /** Claims that do not run here, and when that was seen first. */
  let idle = new Map<string, number>();
  return async () => {
    const { rows } = await queries
      .query<{ lost: string[]; claims: string[]; unsure: boolean }>(LOOK, [leaseMs, workflow, workerId])
      .catch((error: unknown) => {
        unsureAt = performance.now();
        throw error;
      });
    const now = performance.now();
    const { lost = [], claims = [], unsure = false } = rows[0] ?? {};
    if (unsure) unsureAt = now;
    if (now - unsureAt >= leaseMs) for (const id of lost) await options.recover(id);
    idle = new Map(claims.filter((token) => !options.isRunning(token)).map((token) => [token, idle.get(token) ?? now]));
    const stranded = [...idle].filter(([, since]) => now - since >= leaseMs).map(([token]) => token);
    if (stranded.length > 0) await queries.query(GIVE_BACK, [workerId, stranded]);
  };
}

const LOOK = `
  select array(
    select distinct s.executor_id from dbos.workflow_status s
    where s.status = 'PENDING' and s.name = $2
      and not exists (select 1 from troupe.worker w where w.id = s.executor_id and w.expires_at > clock_timestamp())
      and clock_timestamp() > pg_postmaster_start_time() + 2 * $1::float * interval '1 ms') as lost,
    array(
      select s.owner_xid::text from dbos.workflow_status s
      where s.status = 'PENDING' and s.name = $2 and s.executor_id = $3 and s.owner_xid is not null) as claims,
    exists (select 1 from troupe.worker w where w.id = $3 and w.expires_at <= clock_timestamp()) as unsure`;

/**
 * Returns claims of a living worker to the queue, as DBOS does for a lost one. Such a claim was committed, but the answer
 * of the server was lost, or DBOS could not read the workflow. Nobody else recovers it while the lease is valid.
 */
const GIVE_BACK = `
  update dbos.workflow_status set status = 'ENQUEUED', owner_xid = null, started_at_epoch_ms = null,
    updated_at = (extract(epoch from now()) * 1000)::bigint
  where executor_id = $1 and owner_xid::text = any($2) and status = 'PENDING'`;
