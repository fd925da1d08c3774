/** Submitted work: one row for each prompt, with its request and, in the end, its outcome. */

import type { Queries } from "../../engine/lease.ts";
import type { Outcome } from "../../session/session.ts";

/** Behaviour when a worker is lost while it answers. */
export type OnLoss = "continue" | "stop";

export interface WorkRequest {
  readonly prompt: string;
  /** Flags of the session, as on the command line: model, rules, limits. Never keys. */
  readonly flags: readonly string[];
  /** The git repository to work on, and the branch, tag or commit (default: the remote's HEAD). */
  readonly repository?: string;
  readonly ref?: string;
}

export type WorkOutcome =
  | { readonly kind: "done"; readonly answer: string }
  /** The worker was lost, and `onLoss` was `stop`. */
  | { readonly kind: "lost" }
  | { readonly kind: Exclude<Outcome["kind"], "done">; readonly message: string };

export interface WorkRow {
  readonly id: string;
  readonly sessionId: string;
  readonly tenant: string;
  readonly pool: string;
  readonly onLoss: OnLoss;
  readonly request: WorkRequest;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** How often a worker has begun it. */
  readonly starts: number;
  readonly worker: string | null;
  /** How many workers in a row were lost while they ran it. */
  readonly losses: number;
  /** The reason why no worker takes it up any more. */
  readonly setAside: string | null;
  readonly outcome: WorkOutcome | null;
}

const COLUMNS = `id, session_id as "sessionId", tenant, pool, on_loss as "onLoss", request, created_at as "createdAt",
  started_at as "startedAt", ended_at as "endedAt", starts, worker, losses, set_aside as "setAside", outcome`;

/** Stores the work. Storing the same id twice is the same as storing it once. */
export async function addWork(
  queries: Queries,
  work: Pick<WorkRow, "id" | "sessionId" | "tenant" | "pool" | "onLoss" | "request">,
): Promise<void> {
  await queries.query(
    `insert into troupe.work(id, session_id, tenant, pool, on_loss, request) values($1, $2, $3, $4, $5, $6)
     on conflict do nothing`,
    [work.id, work.sessionId, work.tenant, work.pool, work.onLoss, JSON.stringify(work.request)],
  );
}

export async function findWork(queries: Queries, id: string): Promise<WorkRow | undefined> {
  const { rows } = await queries.query<WorkRow>(`select ${COLUMNS} from troupe.work where id = $1`, [id]);
  return rows[0];
}

/** Returns the newest work first. */
export async function listWork(queries: Queries, limit: number): Promise<readonly WorkRow[]> {
  const { rows } = await queries.query<WorkRow>(
    `select ${COLUMNS} from troupe.work order by created_at desc limit $1`,
    [limit],
  );
  return rows;
}

/** Notes that a worker begins. Returns how many workers in a row were lost while they ran it. */
export async function noteStart(queries: Queries, id: string, worker: string): Promise<number> {
  const { rows } = await queries.query<{ losses: number }>(
    `update troupe.work set starts = starts + 1, worker = $2, taken_at = clock_timestamp(),
       started_at = coalesce(started_at, clock_timestamp()),
       losses = case when worker is null then 0 when worker = $2 then losses
                     when taken_at < clock_timestamp() - interval '10 min' then 1 else losses + 1 end
     where id = $1 and outcome is null returning losses`,
    [id, worker],
  );
  return rows[0]?.losses ?? 0;
}

/** Ends work with the reason that its workers were lost. `reopen` takes it back. Returns the outcome. */
export async function setAside(queries: Queries, id: string, losses: number): Promise<WorkOutcome> {
  const message = `Set aside: ${losses} workers in a row began this work, and none of them came to an end.`;
  const outcome: WorkOutcome = { kind: "failed", message };
  await queries.query(
    `update troupe.work set set_aside = $2, outcome = $3, ended_at = clock_timestamp()
     where id = $1 and outcome is null`,
    [id, message, JSON.stringify(outcome)],
  );
  return outcome;
}

/** Prepares work that has failed or was set aside for another run. Returns false if it was answered or does not exist. */
export async function reopen(queries: Queries, id: string): Promise<boolean> {
  const { rows } = await queries.query(
    `update troupe.work set outcome = null, ended_at = null, losses = 0, set_aside = null, worker = null
     where id = $1 and (set_aside is not null or outcome->>'kind' <> 'done') returning 1`,
    [id],
  );
  return rows.length > 0;
}

/** Returns the tenant of a stored session. */
export async function tenantOf(queries: Queries, sessionId: string): Promise<string | undefined> {
  const { rows } = await queries.query<{ tenant: string }>("select tenant from troupe.session where id = $1", [
    sessionId,
  ]);
  return rows[0]?.tenant;
}

/** Stores the outcome once. The first one counts. */
export async function noteEnd(queries: Queries, id: string, outcome: WorkOutcome): Promise<void> {
  await queries.query(
    "update troupe.work set outcome = $2, ended_at = clock_timestamp() where id = $1 and outcome is null",
    [id, JSON.stringify(outcome)],
  );
}
