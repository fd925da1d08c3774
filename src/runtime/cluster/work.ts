/** Submitted work: one row for each prompt, with its request and, in the end, its outcome. */

import { type Condition, conditionAfter, type Queries } from "../../lib/queries.ts";
import type { TraceContext } from "../../lib/trace-context.ts";
import type { Limits } from "../../session/budget/budget.ts";
import type { ExternalToolDefinition } from "../../session/requests/external-tools.ts";
import type { RequestKind } from "../../session/requests/requests.ts";
import type { Outcome } from "../../session/session.ts";
import type { Database } from "../../store/postgres/database.ts";
import { changes, notifying, topics } from "../../store/postgres/notifications.ts";
import type { Ceiling } from "../permissions/policy.ts";

/** Behaviour when a worker is lost while it answers. */
export type OnLoss = "continue" | "stop";

export interface WorkRequest {
  readonly prompt: string;
  /** Flags of the session, as on the command line: model, rules, limits. Never keys. */
  readonly flags: readonly string[];
  /** The git repository to work on, and the branch, tag or commit (default: the remote's HEAD). */
  readonly repository?: string;
  readonly ref?: string;
  /** Kinds of requests that somebody answers. All others are refused at once, as without anyone to ask. */
  readonly asks?: readonly RequestKind[];
  /** Options of a program's session, in the contract of client programs. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Tools that the program runs. */
  readonly tools?: readonly ExternalToolDefinition[];
  /** Set if the session runs an agent of another session. */
  readonly child?: ChildRequest;
  /** The submitter's trace: the spans of all its activations belong to it, on whichever worker they run. */
  readonly trace?: TraceContext;
}

/** Facts that an agent takes over from the session that started it. They restrict; they allow nothing on a machine. */
export interface ChildRequest {
  readonly taskId: string;
  /** The agent's definition, in the form of client programs. */
  readonly agent: Readonly<Record<string, unknown>> & { readonly name: string };
  readonly tools: readonly string[];
  readonly model: string;
  readonly reasoningEffort?: string;
  readonly ceiling: Ceiling;
  /** The working folder of the session that started it. */
  readonly cwd: string;
  /** Limits on agents that it starts. */
  readonly agents: { readonly maxDepth: number; readonly maxTotal: number };
  /** Limits of the work, counted from this line of its log on. */
  readonly allowance: Limits;
  readonly since: number;
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
  /** The work whose session started this one's agent. */
  readonly parent: string | null;
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
  /** Since when it waits for a response, without a worker. */
  readonly waitingAt: Date | null;
  /** Set when somebody has asked to end it. */
  readonly abortAt: Date | null;
}

export const COLUMNS = `id, session_id as "sessionId", tenant, pool, parent, on_loss as "onLoss", request, created_at as "createdAt",
  started_at as "startedAt", ended_at as "endedAt", starts, worker, losses, set_aside as "setAside", outcome,
  waiting_at as "waitingAt", abort_at as "abortAt"`;

/** Stores the work. Storing the same id twice is the same as storing it once. */
export async function addWork(
  queries: Queries,
  work: Pick<WorkRow, "id" | "sessionId" | "tenant" | "pool" | "onLoss" | "request"> & Partial<Pick<WorkRow, "parent">>,
): Promise<void> {
  const { id, sessionId, tenant, pool, onLoss, request, parent = null } = work;
  await queries.query(
    `insert into troupe.work(id, session_id, tenant, pool, on_loss, request, parent)
     values($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
    [id, sessionId, tenant, pool, onLoss, JSON.stringify(request), parent],
  );
}

export async function findWork(queries: Queries, id: string): Promise<WorkRow | undefined> {
  const { rows } = await queries.query<WorkRow>(`select ${COLUMNS} from troupe.work where id = $1`, [id]);
  return rows[0];
}

/** Notifications wake those who wait for work; rows are looked at after this time in case one is lost. */
const WAIT_POLL_MS = 10_000;
/** How long a waiting client tolerates an unreachable database; the same as for workers. */
const PATIENCE_MS = 60_000;

/** Waits until the work has an outcome, at most `timeoutMs`. Returns the row as it is then. */
export async function waitForWork(
  database: Database,
  id: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<WorkRow | undefined> {
  const late = AbortSignal.timeout(timeoutMs);
  const how = { signal: signal ? AbortSignal.any([signal, late]) : late, pollMs: WAIT_POLL_MS };
  let row: WorkRow | undefined;
  let seenAt = performance.now();
  for await (const _ of changes(database.notifications, [topics.work(id)], how)) {
    try {
      row = await findWork(database, id);
      seenAt = performance.now();
    } catch (error) {
      if (performance.now() - seenAt > PATIENCE_MS) throw error;
    }
    if (row && row.outcome !== null) return row;
  }
  return row;
}

/** Notifies of a change of the work. */
const NOTIFY = `${notifying("work", "id")}, ${notifying("session", "session_id")}`;

/** Restricts a statement to a valid claim, if there is one. `by`: number of values of the statement itself. */
export const during = (claim: Condition | undefined, by: number): string =>
  claim ? ` and ${conditionAfter(claim, by)}` : "";

/**
 * Notes that a worker begins. Returns how many workers in a row were lost while they ran it; undefined if the claim is no
 * longer valid or the work has ended.
 */
export async function recordStart(
  queries: Queries,
  id: string,
  { worker, claim }: { readonly worker: string; readonly claim?: Condition },
): Promise<number | undefined> {
  const { rows } = await queries.query<{ losses: number }>(
    `update troupe.work set starts = starts + 1, waiting_at = null, worker = $2, taken_at = clock_timestamp(),
       started_at = coalesce(started_at, clock_timestamp()),
       losses = case when worker is null then 0 when worker = $2 then losses
                     -- The server was unreachable, so no worker could renew its lease.
                     when taken_at < pg_postmaster_start_time() then losses
                     when taken_at < clock_timestamp() - interval '10 min' then 1 else losses + 1 end
     where id = $1 and outcome is null${during(claim, 2)} returning losses`,
    [id, worker, ...(claim?.values ?? [])],
  );
  return rows[0]?.losses;
}

/** Stores that the worker gives the work back, so that nobody counts it as lost. */
export async function recordHandOver(queries: Queries, id: string, claim: Condition): Promise<void> {
  await queries.query(`update troupe.work set worker = null where id = $1 and outcome is null${during(claim, 1)}`, [
    id,
    ...claim.values,
  ]);
}

/** Stores the reason why no worker takes the work up any more. */
export async function recordSetAside(queries: Queries, id: string, reason: string): Promise<void> {
  await queries.query("update troupe.work set set_aside = $2 where id = $1 and outcome is null", [id, reason]);
}

/** Prepares work that has failed or was set aside for another run. Returns false if it was answered or does not exist. */
export async function reopen(queries: Queries, id: string): Promise<boolean> {
  const { rows } = await queries.query(
    `update troupe.work set outcome = null, ended_at = null, losses = 0, starts = 0, set_aside = null, worker = null,
       abort_at = null
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

/** Stores that it waits for a response, without a worker. A wait is not a failed start. */
export async function recordWaiting(queries: Queries, id: string, claim?: Condition): Promise<void> {
  await queries.query(
    `with parked as (
       update troupe.work set waiting_at = clock_timestamp(), starts = 0, worker = null
       where id = $1 and outcome is null${during(claim, 1)} returning id, session_id)
     select ${NOTIFY} from parked`,
    [id, ...(claim?.values ?? [])],
  );
}

/** The reason for an activation that ends the work. Work that was retried may be ended again. */
export const abortReason = ({ abortAt }: Pick<WorkRow, "abortAt">): string => `abort-${abortAt?.getTime() ?? 0}`;

/** Asks for the end of work and of its agents' work. Returns what has not ended. */
export const noteAbort = (queries: Queries, id: string): Promise<readonly WorkRow[]> =>
  abortFamily(queries, "select $1::text", id);

/** The same for the agents' work alone: the work itself may be retried. */
export const noteAbortOfAgents = (queries: Queries, id: string): Promise<readonly WorkRow[]> =>
  abortFamily(queries, "select id from troupe.work where parent = $1", id);

async function abortFamily(queries: Queries, first: string, id: string): Promise<readonly WorkRow[]> {
  const { rows } = await queries.query<WorkRow>(
    `with recursive family(id) as (
       ${first} union select w.id from troupe.work w join family f on w.parent = f.id), asked as (
       update troupe.work set abort_at = coalesce(abort_at, clock_timestamp())
       where id in (select id from family) and outcome is null returning *)
     select ${COLUMNS}, ${NOTIFY} from asked`,
    [id],
  );
  return rows;
}

/** Whether work of its agents has ended since the activation began. */
export async function hasJoined(queries: Queries, id: string): Promise<boolean> {
  const { count } = await queries.query(
    "select 1 from troupe.work w join troupe.work c on c.parent = w.id where w.id = $1 and c.ended_at >= w.taken_at limit 1",
    [id],
  );
  return count > 0;
}

/** Returns work of the session without an outcome, oldest first. */
export async function openWork(queries: Queries, sessionId: string): Promise<readonly WorkRow[]> {
  const { rows } = await queries.query<WorkRow>(
    `select ${COLUMNS} from troupe.work where session_id = $1 and outcome is null order by created_at, id`,
    [sessionId],
  );
  return rows;
}

/** Returns the newest work of the session. Work that another tenant has submitted for it does not count. */
export async function lastWork(queries: Queries, sessionId: string): Promise<WorkRow | undefined> {
  const { rows } = await queries.query<WorkRow>(
    `select ${COLUMNS} from troupe.work w where session_id = $1
       and not exists (select 1 from troupe.session s where s.id = w.session_id and s.tenant <> w.tenant)
     order by created_at desc limit 1`,
    [sessionId],
  );
  return rows[0];
}

/** Stores the outcome once. The first one counts. Returns false if there was one, or the claim is no longer valid. */
export async function recordEnd(
  queries: Queries,
  id: string,
  outcome: WorkOutcome,
  claim?: Condition,
): Promise<boolean> {
  const { count } = await queries.query(
    `with ended as (
       update troupe.work set outcome = $2, ended_at = clock_timestamp(), waiting_at = null
       where id = $1 and outcome is null${during(claim, 2)} returning id, session_id)
     select ${NOTIFY} from ended`,
    [id, JSON.stringify(outcome), ...(claim?.values ?? [])],
  );
  return count > 0;
}
