/**
 * The current state of a cluster: workers, queues, sessions, take-overs. `troupe cluster` and the dashboard show it. Reads only
 * the tables of troupe, so it works before the engine has created its own.
 */

import type { Queries } from "../../lib/queries.ts";
import { type BudgetRow, listBudgets, listRates, type RateRow } from "./limits.ts";
import { readable } from "./readable.ts";
import { openRequests, type RequestRow } from "./requests.ts";
import { ACTIVATION_SEPARATOR } from "./run-work.ts";
import type { ClusterSession, OpenSession, QueueState, TakeOver, WorkerState, WorkState } from "./states.ts";

export interface ClusterOverview {
  readonly workers: readonly WorkerState[];
  readonly queues: readonly QueueState[];
  readonly sessions: readonly ClusterSession[];
  readonly takeOvers: readonly TakeOver[];
  readonly budgets: readonly BudgetRow[];
  readonly limits: readonly RateRow[];
  readonly requests: readonly RequestRow[];
  /** The database role is that of a tenant: it may not read workers, requests and limits, and may change nothing. */
  readonly isTenant: boolean;
}

const MAX_OPEN = 200;
const MAX_OPEN_SESSIONS = 500;
const MAX_ENDED = 50;
const MAX_TAKE_OVERS = 50;
const MAX_REQUESTS = 100;
const MAX_TEXT = 2_000;

export async function readOverview(queries: Queries): Promise<ClusterOverview> {
  const [workers, queues, sessions, takeOvers, budgets, limits, requests] = await Promise.all([
    readable(listWorkers(queries)),
    listQueues(queries),
    listClusterSessions(queries),
    listTakeOvers(queries),
    listBudgets(queries),
    readable(listRates(queries)),
    readable(openRequests(queries)),
  ]);
  return {
    ...{ workers: workers ?? [], queues, sessions, takeOvers, budgets, limits: limits ?? [] },
    requests: (requests ?? []).slice(0, MAX_REQUESTS),
    isTenant: workers === undefined,
  };
}

export async function listWorkers(queries: Queries): Promise<readonly WorkerState[]> {
  const { rows } = await queries.query<WorkerState>(
    `select w.id as worker, w.host, w.pid, w.pool, w.version, w.tenant,
            case when w.expires_at < clock_timestamp() then 'lost' when not (w.draining or w.drain_asked) then 'alive'
                 when w.draining and s.count = 0 then 'drained' else 'draining' end as state,
            s.count as sessions, w.concurrency,
            (extract(epoch from w.expires_at - clock_timestamp()) * 1000)::float as "leaseMs"
     from troupe.worker w, lateral (select count(*)::int from troupe.session where holder = w.id) s
     order by w.started_at`,
  );
  return rows;
}

/** Work with its place in the queue. Work that was dispatched but has not begun still waits. */
const PLACES = `(
  select split_part(work_id, '${ACTIVATION_SEPARATOR}', 1) as id, bool_or(dispatched_at is not null) as taken,
         min(enqueued_at) as since
  from troupe.queue group by 1) p on p.id = w.id`;
const WITH_PLACE = `troupe.work w left join ${PLACES}`;
const STATE = `case when w.set_aside is not null then 'set_aside' when w.outcome is not null then w.outcome->>'kind'
  when w.waiting_at is not null then 'waiting' when p.taken and w.worker is not null then 'running'
  when p.id is not null then 'queued' else 'unknown' end`;
const WORK = `w.id as work, w.session_id as session, ${STATE} as state, w.pool, w.tenant, w.starts, w.worker,
  w.created_at as submitted, left(coalesce(w.set_aside, w.outcome->>'message'), ${MAX_TEXT}) as reason`;

export async function listQueues(queries: Queries): Promise<readonly QueueState[]> {
  const { rows } = await queries.query<QueueState>(
    `select pool, tenant, count(*) filter (where state = 'queued')::int as waiting,
            count(*) filter (where state = 'running')::int as running,
            count(*) filter (where state = 'waiting')::int as parked,
            count(*) filter (where state = 'set_aside')::int as "setAside",
            (extract(epoch from clock_timestamp() - min(since) filter (where state = 'queued')) * 1000)::float as "oldestMs"
     from (select w.pool, w.tenant, p.since, ${STATE} as state from ${WITH_PLACE}
           where w.outcome is null or w.set_aside is not null) w
     group by pool, tenant order by pool, tenant`,
  );
  return rows;
}

/** Returns the newest work first. */
export async function listWorkStates(queries: Queries, limit: number): Promise<readonly WorkState[]> {
  const { rows } = await queries.query<WorkState>(
    `select ${WORK} from ${WITH_PLACE} order by w.created_at desc limit $1`,
    [limit],
  );
  return rows;
}

/** Returns what was set aside first, then what waits for people, then other open work, then the last that ended. */
async function listClusterSessions(queries: Queries): Promise<readonly ClusterSession[]> {
  const { rows } = await queries.query<ClusterSession & { ended: boolean; ended_at: Date | null }>(
    `with chosen as materialized (
       (select id, false as ended from troupe.work where outcome is null or set_aside is not null
        order by set_aside is null, waiting_at is null, created_at limit ${MAX_OPEN})
       union all
       (select id, true as ended from troupe.work where outcome is not null and set_aside is null
        order by ended_at desc limit ${MAX_ENDED}))
     select * from (
       select distinct on (w.session_id) ${WORK}, c.ended, w.ended_at, left(w.request->>'prompt', 300) as prompt,
              w.request->>'repository' as repository, w.request->>'ref' as ref,
              (select count(*)::int from troupe.work o where o.session_id = w.session_id and o.outcome is null) as open,
              coalesce(s.takeovers, 0) as "takeOvers",
              greatest(s.changed_at, w.created_at, w.started_at, w.ended_at) as "lastActivity"
       from chosen c join troupe.work w on w.id = c.id left join ${PLACES} left join troupe.session s on s.id = w.session_id
       order by w.session_id, c.ended, w.ended_at desc nulls first, w.created_at) w
     order by ended, state <> 'set_aside', state <> 'waiting', ended_at desc, submitted`,
  );
  return rows.map(({ ended: _, ended_at: __, ...row }) => row);
}

/** Returns the sessions with open work: those that wait for a response first, then the last ones. */
export async function listOpenSessions(queries: Queries): Promise<readonly OpenSession[]> {
  const { rows } = await queries.query<OpenSession>(
    `select w.session_id as session, min(w.tenant) as tenant, s.holder as worker
     from troupe.work w left join troupe.session s on s.id = w.session_id where w.outcome is null
     group by w.session_id, s.holder
     order by bool_or(w.waiting_at is not null) desc, max(w.created_at) desc limit ${MAX_OPEN_SESSIONS}`,
  );
  return rows;
}

async function listTakeOvers(queries: Queries): Promise<readonly TakeOver[]> {
  const { rows } = await queries.query<TakeOver>(
    `select id as session, tenant, taken_over_at as at, taken_from as "from", taken_by as "to", takeovers as count
     from troupe.session where taken_over_at is not null order by taken_over_at desc limit ${MAX_TAKE_OVERS}`,
  );
  return rows;
}
