/**
 * Finds parked work that should continue. Usually whoever caused that has submitted an activation; if that process was lost, a
 * worker makes up for it. The reason is the same in both cases, so the activation runs once.
 */

import type { Queries } from "../../lib/queries.ts";
import { abortReason, COLUMNS, type WorkRow } from "./work.ts";

interface DueWork {
  readonly work: WorkRow;
  readonly reason: string;
}

/** Each returns the id of the cause as `cause`. */
const CAUSES = [
  // A request that has an answer.
  `select w.*, a.request_id as cause from troupe.work w
   join troupe.request r on r.work_id = w.id and r.ended_at is null
   join troupe.answer a on a.session_id = r.session_id and a.request_id = r.id
   where w.waiting_at is not null and w.outcome is null`,
  // Work of an agent that has ended.
  `select w.*, c.id as cause from troupe.work w join troupe.work c on c.parent = w.id
   where w.waiting_at is not null and w.outcome is null and c.ended_at >= w.taken_at`,
  // An earlier message of the session that has ended.
  `select w.*, 'after-' || b.id as cause from troupe.work w
   cross join lateral (
     select e.id from troupe.work e
     where e.session_id = w.session_id and e.ended_at >= w.waiting_at and (e.created_at, e.id) < (w.created_at, w.id)
     order by e.ended_at desc limit 1) b
   where w.waiting_at is not null and w.outcome is null and not exists (
     select 1 from troupe.work o where o.session_id = w.session_id and o.outcome is null
       and (o.created_at, o.id) < (w.created_at, w.id))`,
  // Somebody who wants to end it.
  `select w.*, null as cause from troupe.work w
   where w.waiting_at is not null and w.outcome is null and w.abort_at is not null`,
];

export async function dueWork(queries: Queries): Promise<readonly DueWork[]> {
  const due: DueWork[] = [];
  for (const cause of CAUSES) {
    const { rows } = await queries.query<WorkRow & { cause: string | null }>(
      `select ${COLUMNS}, cause from (${cause} limit 1000) due`,
    );
    for (const work of rows) due.push({ work, reason: work.cause ?? abortReason(work) });
  }
  return due;
}

/**
 * Returns new work, and work that was retried, which is not in the queue: who submitted it was lost before that, or does it
 * at this moment.
 */
export async function unqueuedWork(queries: Queries): Promise<readonly WorkRow[]> {
  const { rows } = await queries.query<WorkRow>(
    `select ${COLUMNS} from troupe.work w
     where w.outcome is null and w.starts = 0 and w.waiting_at is null
       and w.created_at < clock_timestamp() - interval '10 s'
       and not exists (select 1 from troupe.queue q where q.work_id = w.id)
     limit 1000`,
  );
  return rows;
}

/** The reason for an activation of work that waited behind an earlier message of its session. */
export const afterReason = ({ id }: Pick<WorkRow, "id">): string => `after-${id}`;
