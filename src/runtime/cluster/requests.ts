/**
 * Requests of sessions to people and programs, as rows. A request is answered by inserting a row: the first response counts.
 * The worker that has the session open reads it; if none has, a new activation resumes the session.
 */

import { defined } from "../../lib/defined.ts";
import type { Condition, Queries } from "../../lib/queries.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { type AnyAnswer, type AnyRequest, eventsOf, type RequestKind } from "../../session/requests/requests.ts";
import type { Database } from "../../store/postgres/database.ts";
import { notifying } from "../../store/postgres/notifications.ts";
import { during } from "./work.ts";

export interface RequestRow {
  readonly sessionId: string;
  readonly id: string;
  readonly workId: string;
  readonly kind: RequestKind;
  /** The request as it was announced. */
  readonly data: AnyRequest;
}

const COLUMNS = `r.session_id as "sessionId", r.id, r.work_id as "workId", r.kind, r.data`;
const NOTIFY = notifying("session", "session_id");

/** Stores an open request. Storing it again, by another worker, changes nothing. */
export async function addRequest(
  queries: Queries,
  sessionId: string,
  request: AnyRequest,
  workId: string,
): Promise<void> {
  await queries.query(
    `with added as (
       insert into troupe.request(session_id, id, work_id, kind, data) values($1, $2, $3, $4, $5)
       on conflict (session_id, id) do update set work_id = excluded.work_id, data = excluded.data returning session_id)
     select ${NOTIFY} from added`,
    [sessionId, request.requestId, workId, request.kind, JSON.stringify(request)],
  );
}

/** Returns open requests of a session, or of all, oldest first. */
export async function openRequests(queries: Queries, sessionId?: string): Promise<readonly RequestRow[]> {
  const { rows } = await queries.query<RequestRow>(
    `select ${COLUMNS} from troupe.request r where ($1::text is null or r.session_id = $1) and r.ended_at is null
       and not exists (select 1 from troupe.answer a where a.session_id = r.session_id and a.request_id = r.id)
     order by r.created_at limit 10000`,
    [sessionId ?? null],
  );
  return rows;
}

/** Returns the ids of open requests by session: of those that wait longest. */
export async function openRequestIds(queries: Queries): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { rows } = await queries.query<{ sessionId: string; ids: string[] }>(
    `select session_id as "sessionId", array_agg(id) as ids from (
       select r.session_id, r.id from troupe.request r where r.ended_at is null
         and not exists (select 1 from troupe.answer a where a.session_id = r.session_id and a.request_id = r.id)
       order by r.created_at limit 1000) open group by session_id`,
  );
  return new Map(rows.map(({ sessionId, ids }) => [sessionId, new Set(ids)]));
}

/** Returns the request as an event for those who watch the session: a session that is parked has no open request in its log. */
export function askedEvent({ data: { kind, ...data } }: RequestRow): SessionEvent {
  const event = { id: crypto.randomUUID(), timestamp: new Date().toISOString(), parentId: null, ephemeral: true };
  return { ...event, type: eventsOf(kind)[0], data } as unknown as SessionEvent;
}

/** Whether there is such a request, open or not. */
export async function isKnownRequest(queries: Queries, sessionId: string, id: string): Promise<boolean> {
  const { count } = await queries.query("select 1 from troupe.request where session_id = $1 and id = $2", [
    sessionId,
    id,
  ]);
  return count > 0;
}

/** Ends the work's requests, except those that a later activation continues. */
export async function endRequests(
  queries: Queries,
  workId: string,
  { except = [], claim }: { readonly except?: readonly string[]; readonly claim?: Condition | undefined } = {},
): Promise<void> {
  await queries.query(
    `with ended as (
       update troupe.request set ended_at = clock_timestamp()
       where work_id = $1 and ended_at is null and id <> all($2::text[])${during(claim, 2)} returning session_id)
     select ${NOTIFY} from ended`,
    [workId, except, ...(claim?.values ?? [])],
  );
}

export async function hasOpenRequest(queries: Queries, workId: string): Promise<boolean> {
  const { count } = await queries.query(
    "select 1 from troupe.request where work_id = $1 and ended_at is null limit 1",
    [workId],
  );
  return count > 0;
}

/** Returns whether a request of the work has an answer that no worker has used yet. */
export async function isAnswered(queries: Queries, workId: string): Promise<boolean> {
  const { count } = await queries.query(
    `select 1 from troupe.request r join troupe.answer a on a.session_id = r.session_id and a.request_id = r.id
     where r.work_id = $1 and r.ended_at is null limit 1`,
    [workId],
  );
  return count > 0;
}

/** A person's decision. A reason goes to the agent. */
export type Decision =
  | { readonly kind: "allow" }
  | { readonly kind: "deny"; readonly reason?: string }
  | { readonly kind: "text"; readonly text: string; readonly isChoice?: boolean };

/** Returns the answer to a request of this kind. Throws if it is not answered by such a decision. */
export function answerOf(kind: RequestKind, decision: Decision): AnyAnswer {
  if (kind === "user_input" && decision.kind === "text") {
    return { answer: decision.text, wasFreeform: decision.isChoice !== true };
  }
  if (decision.kind !== "text") {
    const isAllowed = decision.kind === "allow";
    const comment = defined({ feedback: isAllowed ? undefined : decision.reason });
    if (kind === "permission") {
      return isAllowed ? { kind: "approved" } : { kind: "denied-interactively-by-user", ...comment };
    }
    if (kind === "exit_plan_mode") return { approved: isAllowed, ...comment };
  }
  const isOurs = kind === "user_input" || kind === "permission" || kind === "exit_plan_mode";
  throw new TroupeError(
    "usage",
    isOurs
      ? `This answer does not fit a request of kind ${kind}. Answer with ${kind === "user_input" ? "a text" : "allow or deny"}.`
      : `A request of kind ${kind} is answered by the program that submitted the job.`,
  );
}

export async function answerTo(queries: Queries, sessionId: string, requestId: string): Promise<AnyAnswer | undefined> {
  const { rows } = await queries.query<{ answer: AnyAnswer }>(
    "select answer from troupe.answer where session_id = $1 and request_id = $2",
    [sessionId, requestId],
  );
  return rows[0]?.answer;
}

/** Stores the answer if it is the first one to an open request of this kind. Returns the request's work, if so. */
export async function addAnswer(
  database: Database,
  given: {
    readonly sessionId: string;
    readonly requestId: string;
    readonly kind: RequestKind;
    readonly answer: AnyAnswer;
  },
): Promise<string | undefined> {
  const { rows } = await database.query<{ work: string }>(
    `with added as (
       insert into troupe.answer(session_id, request_id, kind, answer)
       select r.session_id, r.id, r.kind, $4 from troupe.request r
       where r.session_id = $1 and r.id = $2 and r.kind = $3 and r.ended_at is null
       on conflict do nothing returning session_id, request_id)
     select r.work_id as work, ${NOTIFY.replace("session_id", "a.session_id")}
     from added a join troupe.request r on r.session_id = a.session_id and r.id = a.request_id`,
    [given.sessionId, given.requestId, given.kind, JSON.stringify(given.answer)],
  );
  return rows[0]?.work;
}
