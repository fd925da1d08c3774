/** Follows the log of a session in the database, and copies logs as exact lines. */

import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { checkedLines } from "../log/exact-lines.ts";
import { decodeLine } from "../log/line.ts";
import { alreadyThere, checkSessionId } from "../session-id.ts";
import type { ExactLines } from "../store.ts";
import type { Database } from "./database.ts";
import { changes, topics } from "./notifications.ts";

export interface FollowedEvent {
  /** Number of the line, from 1. */
  readonly seq: number;
  readonly event: SessionEvent;
}

/** Writers notify of a session's events while its row in `watch` is valid. */
const WATCH_MS = 60_000;
export const RENEW_MS = WATCH_MS / 3;
const PAGE_ROWS = 256;

/**
 * Yields the events after `afterSeq`, without gaps or duplicates, then those that follow, until the signal aborts. The
 * session may not exist yet. Damaged lines are left out. Throws if lines that were yielded are no longer in the log, as
 * after a crash of the server and the worker: follow again then.
 */
export async function* followRows(
  database: Database,
  sessionId: string,
  { afterSeq, signal, pollMs }: { readonly afterSeq: number; readonly signal: AbortSignal; readonly pollMs?: number },
): AsyncGenerator<FollowedEvent> {
  let last: { readonly seq: number; readonly crc: number | undefined } = { seq: afterSeq, crc: undefined };
  let renewedAt = Number.NEGATIVE_INFINITY;
  const how = { signal, ...defined({ pollMs }) };
  for await (const _ of changes(database.notifications, [topics.events(checkSessionId(sessionId))], how)) {
    if (performance.now() - renewedAt > RENEW_MS) {
      await watchEvents(database, [sessionId]);
      renewedAt = performance.now();
    }
    for (let isEnd = false; !isEnd && !signal.aborted; ) {
      const rows = await linesAfter(database, sessionId, last.seq);
      for (const { seq, line } of rows) {
        const decoded = decodeLine(Buffer.from(line));
        const isLinked = decoded.kind !== "record" || last.crc === undefined || decoded.prev === last.crc;
        if (Number(seq) !== last.seq + 1 || !isLinked) throw lostLinesError(sessionId);
        last = { seq: Number(seq), crc: decoded.kind === "record" ? decoded.crc : undefined };
        if (signal.aborted) return;
        if (decoded.kind !== "bad") yield { seq: last.seq, event: decoded.event };
      }
      isEnd = rows.length < PAGE_ROWS;
    }
  }
}

/** Lets writers notify of events of these sessions for a while. Call it again every `RENEW_MS`. */
export async function watchEvents(database: Database, sessionIds: readonly string[]): Promise<void> {
  await database.query(
    `insert into troupe.watch(session_id, until)
     select id, clock_timestamp() + $2::float * interval '1 ms' from unnest($1::text[]) as s(id) order by id
     on conflict (session_id) do update set until = excluded.until`,
    [sessionIds, WATCH_MS],
  );
}

async function linesAfter(
  database: Database,
  sessionId: string,
  seq: number,
): Promise<readonly { readonly seq: string; readonly line: string }[]> {
  const { rows } = await database.query<{ seq: string; line: string }>(
    "select e.seq::text as seq, e.line from troupe.event e where e.session_id = $1 and e.seq > $2 order by e.seq limit $3",
    [sessionId, seq, PAGE_ROWS],
  );
  return rows;
}

function lostLinesError(sessionId: string): TroupeError {
  return new TroupeError("storage", `The log of session ${sessionId} has lost lines that were read before.`, {
    hint: "Read the session again. The database and a worker may have crashed together.",
  });
}

/** The exact lines of logs in the database. */
export function rowLines(database: Database, tenantOf: (sessionId: string) => string): ExactLines {
  return {
    async *read(sessionId) {
      for (let seq = 0, isEnd = false; !isEnd; ) {
        const rows = await linesAfter(database, checkSessionId(sessionId), seq);
        for (const { line } of rows) yield line;
        isEnd = rows.length < PAGE_ROWS;
        seq = Number(rows.at(-1)?.seq ?? seq);
      }
    },
    async add(sessionId, lines) {
      await database.transaction(async (queries) => {
        const { count } = await queries.query(
          "insert into troupe.session(id, tenant, epoch) values($1, $2, 1) on conflict do nothing",
          [checkSessionId(sessionId), tenantOf(sessionId)],
        );
        if (count === 0) throw alreadyThere(sessionId);
        let [stored, page] = [0, [] as string[]];
        const flush = async (): Promise<void> => {
          await queries.query(
            `insert into troupe.event(session_id, seq, epoch, line)
             select $1, $2 + e.number, 1, e.line from unnest($3::text[]) with ordinality as e(line, number)`,
            [sessionId, stored, page],
          );
          [stored, page] = [stored + page.length, []];
        };
        for await (const line of checkedLines(lines)) {
          page.push(line);
          if (page.length >= PAGE_ROWS) await flush();
        }
        await flush();
        await queries.query("update troupe.session set last_seq = $2 where id = $1", [sessionId, stored]);
      });
    },
  };
}
