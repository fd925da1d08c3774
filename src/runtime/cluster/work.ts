/** Submitted work: one row for each prompt, with its request and, in the end, its outcome. */

import type { Queries } from "../../lib/queries.ts";
import type { Outcome } from "../../session/session.ts";
import type { Database } from "../../store/postgres/database.ts";
import { CHANNEL, changes, topics } from "../../store/postgres/notifications.ts";

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
  readonly outcome: WorkOutcome | null;
}

const COLUMNS = `id, session_id as "sessionId", tenant, pool, on_loss as "onLoss", request, created_at as "createdAt",
  started_at as "startedAt", ended_at as "endedAt", starts, worker, outcome`;

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

/** Waits until the work has an outcome, at most `timeoutMs` (default: no limit). Returns the row as it is then. */
export async function waitForWork(
  database: Database,
  id: string,
  timeoutMs: number | undefined,
): Promise<WorkRow | undefined> {
  const signal = timeoutMs === undefined ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
  let row: WorkRow | undefined;
  for await (const _ of changes(database.notifications, [topics.work(id)], { signal })) {
    row = await findWork(database, id);
    if (row && row.outcome !== null) return row;
  }
  return row;
}

/** Notifies of a change of the work. */
const NOTIFY = `pg_notify('${CHANNEL}', '${topics.work("")}' || id)`;

/** Returns the newest work first. */
export async function listWork(queries: Queries, limit: number): Promise<readonly WorkRow[]> {
  const { rows } = await queries.query<WorkRow>(
    `select ${COLUMNS} from troupe.work order by created_at desc limit $1`,
    [limit],
  );
  return rows;
}

export async function noteStart(queries: Queries, id: string, worker: string): Promise<void> {
  await queries.query(
    `update troupe.work set starts = starts + 1, worker = $2, started_at = coalesce(started_at, clock_timestamp())
     where id = $1 and outcome is null`,
    [id, worker],
  );
}

/** Stores the outcome once. The first one counts. */
export async function noteEnd(queries: Queries, id: string, outcome: WorkOutcome): Promise<void> {
  await queries.query(
    `with ended as (
       update troupe.work set outcome = $2, ended_at = clock_timestamp(), waiting_at = null
       where id = $1 and outcome is null returning id)
     select ${NOTIFY} from ended`,
    [id, JSON.stringify(outcome)],
  );
}
