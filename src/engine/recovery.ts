/** Finds workflows that nobody runs: those of lost workers, and claims of this worker that never began. */

import type { Queries } from "../lib/queries.ts";

/** A workflow that was given to a worker. Workflows that were given to it at the same time have the same token. */
export interface WorkflowClaim {
  readonly workflow: string;
  readonly token: string;
}

export const claimKey = ({ workflow, token }: WorkflowClaim): string => `${token} ${workflow}`;

export interface RecoveryOptions {
  readonly workerId: string;
  readonly leaseMs: number;
  /** Name of the workflows. */
  readonly workflow: string;
  /** Whether the workflow runs in this process for this claim. */
  isRunning(claim: WorkflowClaim): boolean;
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
      .query<{ lost: string[]; claims: WorkflowClaim[]; unsure: boolean }>(LOOK, [leaseMs, workflow, workerId])
      .catch((error: unknown) => {
        unsureAt = performance.now();
        throw error;
      });
    const now = performance.now();
    const { lost = [], claims = [], unsure = false } = rows[0] ?? {};
    if (unsure) unsureAt = now;
    if (now - unsureAt >= leaseMs) for (const id of lost) await options.recover(id);
    const notRunning = claims.filter((claim) => !options.isRunning(claim));
    idle = new Map(notRunning.map((claim) => [claimKey(claim), idle.get(claimKey(claim)) ?? now]));
    const stranded = notRunning.filter((claim) => now - (idle.get(claimKey(claim)) ?? now) >= leaseMs);
    if (stranded.length === 0) return;
    await giveBack(queries, workerId, stranded);
  };
}

/** Returns claims of this worker to the queue. Nothing may run for them. */
export async function giveBack(queries: Queries, workerId: string, claims: readonly WorkflowClaim[]): Promise<void> {
  const workflows = claims.map(({ workflow }) => workflow);
  await queries.query(GIVE_BACK, [workerId, workflows, claims.map(({ token }) => token)]);
}

const LOOK = `
  select array(
    select distinct s.executor_id from dbos.workflow_status s
    where s.status = 'PENDING' and s.name = $2
      and not exists (select 1 from troupe.worker w where w.id = s.executor_id and w.expires_at > clock_timestamp())
      and clock_timestamp() > pg_postmaster_start_time() + 2 * $1::float * interval '1 ms') as lost,
    (select coalesce(json_agg(json_build_object('workflow', s.workflow_uuid, 'token', s.owner_xid)), '[]')
      from dbos.workflow_status s
      where s.status = 'PENDING' and s.name = $2 and s.executor_id = $3 and s.owner_xid is not null) as claims,
    exists (select 1 from troupe.worker w where w.id = $3 and w.expires_at <= clock_timestamp()) as unsure`;

/**
 * Returns claims of a living worker to the queue, as DBOS does for a lost one. Such a claim was committed, but the answer
 * of the server was lost, or DBOS could not read the workflow. Nobody else recovers it while the lease is valid.
 */
const GIVE_BACK = `
  update dbos.workflow_status set status = 'ENQUEUED', owner_xid = null, started_at_epoch_ms = null,
    updated_at = (extract(epoch from now()) * 1000)::bigint
  where executor_id = $1 and status = 'PENDING'
    and (workflow_uuid, owner_xid::text) in (select * from unnest($2::text[], $3::text[]))`;
