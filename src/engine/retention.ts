/**
 * Removes old rows, so that the database does not grow for ever. Any worker does it, one at a time and in small statements:
 * an interrupted removal is continued by the next one. Nothing that is open is removed, however old it is.
 */

import type { Queries } from "../lib/queries.ts";

export interface Retention {
  /** Ended work, its requests and answers, and the engine's own rows. */
  readonly workMs: number;
  /** Sessions without open work, with their logs. Undefined: they stay. */
  readonly sessionsMs?: number;
}

/** Rows that one statement removes at most, and statements for each table in one run. */
const BATCH = 1_000;
const MAX_BATCHES = 20;
/** Time between two runs of all workers together. */
const PAUSE_MS = 600_000;

/** `$1` is the time before which rows are old, `$2` the largest number of rows. */
const workRules: readonly string[] = [
  `delete from troupe.work where id in (
     select id from troupe.work where outcome is not null and ended_at < $1 limit $2)`,
  `delete from troupe.request where (session_id, id) in (
     select session_id, id from troupe.request where ended_at < $1 limit $2)`,
  `delete from troupe.answer where (session_id, request_id) in (
     select a.session_id, a.request_id from troupe.answer a
     where a.created_at < $1 and not exists (
       select 1 from troupe.request r where r.session_id = a.session_id and r.id = a.request_id) limit $2)`,
  // The other tables of DBOS refer to this one and follow it.
  `delete from dbos.workflow_status where workflow_uuid in (
     select workflow_uuid from dbos.workflow_status
     where status not in ('PENDING', 'ENQUEUED', 'DELAYED') and updated_at < extract(epoch from $1::timestamptz) * 1000
     limit $2)`,
  "delete from troupe.worker where id in (select id from troupe.worker where expires_at < $1 limit $2)",
  `delete from troupe.rate_block where (name, worker, line) in (
     select name, worker, line from troupe.rate_block where seen_at < $1 limit $2)`,
  // A gate of a model without a limit of its own. The next request creates the row again.
  `delete from troupe.rate_limit where name in (
     select l.name from troupe.rate_limit l
     where l.requests is null and l.concurrency is null and coalesce(l.gate_until, $1) <= $1
       and not exists (select 1 from troupe.rate_block b where b.name = l.name) limit $2)`,
  "delete from troupe.watch where session_id in (select session_id from troupe.watch where until < $1 limit $2)",
];

const sessionRules: readonly string[] = [
  `delete from troupe.session where id in (
     select s.id from troupe.session s
     where s.changed_at < $1 and not exists (select 1 from troupe.work w where w.session_id = s.id and w.outcome is null)
       and (s.holder is null or not exists (
         select 1 from troupe.worker w where w.id = s.holder and w.expires_at > clock_timestamp()))
     limit least($2, 100))`,
  `delete from troupe.remote_session where id in (
     select r.id from troupe.remote_session r
     where r.changed_at < $1 and not exists (select 1 from troupe.session s where s.id = r.id) limit $2)`,
];

/** Removes what is old. Returns the number of rows. Does nothing if another worker has done it a short while ago. */
export async function removeOld(
  queries: Queries,
  { workMs, sessionsMs }: Retention,
  pauseMs = PAUSE_MS,
): Promise<number> {
  if (!(await takeTurn(queries, pauseMs))) return 0;
  let removed = await removeBy(queries, workRules, workMs);
  if (sessionsMs !== undefined) removed += await removeBy(queries, sessionRules, sessionsMs);
  return removed;
}

async function removeBy(queries: Queries, rules: readonly string[], ageMs: number): Promise<number> {
  const { rows } = await queries.query<{ before: string }>(
    "select (clock_timestamp() - $1::float * interval '1 ms')::text as before",
    [ageMs],
  );
  const before = rows[0]?.before;
  let removed = 0;
  for (const rule of rules) {
    for (let batch = 0, isDone = false; batch < MAX_BATCHES && !isDone; batch++) {
      const { count } = await queries.query(rule, [before, BATCH]);
      removed += count;
      isDone = count === 0;
    }
  }
  return removed;
}

/** The row stays until it expires: it is the pause. */
async function takeTurn(queries: Queries, pauseMs: number): Promise<boolean> {
  const { count } = await queries.query(
    `insert into troupe.lock as l (name, expires_at) values('retention', clock_timestamp() + $1::float * interval '1 ms')
     on conflict (name) do update set expires_at = excluded.expires_at where l.expires_at < clock_timestamp()`,
    [pauseMs],
  );
  return count > 0;
}
