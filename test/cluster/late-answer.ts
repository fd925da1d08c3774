/**
 * A worker that writes the answer to a message until another one takes the session: after that one has read the log. A
 * trigger of the database stores the answer in the statement that takes the session.
 */

import type { SessionEvent } from "../../src/protocol/event.ts";
import { openCluster, submitWork } from "../../src/runtime/cluster/cluster.ts";
import { decodeLine, encodeLine, noRecord, type RecordLink } from "../../src/store/log/line.ts";
import type { Database } from "../../src/store/postgres/database.ts";

const TRIGGER = `
  create table if not exists late_line(session_id text, seq bigint, line text);
  create or replace function late_lines() returns trigger language plpgsql as $$ begin
    insert into troupe.event(session_id, seq, epoch, line)
      select l.session_id, l.seq, old.epoch, l.line from late_line l where l.session_id = new.id order by l.seq;
    new.last_seq := greatest(new.last_seq, (select max(l.seq) from late_line l where l.session_id = new.id));
    delete from late_line l where l.session_id = new.id;
    return new;
  end $$;
  create or replace trigger late_lines before update of epoch on troupe.session for each row
    when (new.epoch > old.epoch) execute function late_lines();`;

/** Submits a message whose log and answer are those of the first message of the session. Returns the id of the work. */
export async function answerLate(
  { url, database }: { readonly url: string; readonly database: Database },
  session: { readonly sessionId: string; readonly pool: string },
): Promise<string> {
  const { sessionId } = session;
  const id = `again-${sessionId}`;
  await database.query(TRIGGER);
  const { rows } = await database.query<{ line: string; epoch: string }>(
    "select line, epoch from troupe.event where session_id = $1 order by seq",
    [sessionId],
  );
  const records = rows.flatMap(({ line }) => {
    const decoded = decodeLine(Buffer.from(line));
    return decoded.kind === "record" ? [decoded] : [];
  });
  const from = records.findIndex(({ event }) => event.type === "user.message");
  const answer = records.findIndex(({ event }) => event.type === "assistant.message");
  let link: RecordLink = records.at(-1) ?? noRecord;
  let parentId = records.at(-1)?.event.id ?? null;
  for (const [index, { event }] of records.entries()) {
    if (index < from) continue;
    const again = JSON.parse(JSON.stringify(event).replaceAll(`work-work-${sessionId}`, `work-${id}`)) as SessionEvent;
    const encoded = encodeLine({ ...again, id: `${event.id}-again`, parentId }, link);
    parentId = `${event.id}-again`;
    link = encoded.link;
    const values = [sessionId, link.seq, encoded.bytes.toString().trimEnd()];
    if (index >= answer) await database.query("insert into late_line values($1, $2, $3)", values);
    else await database.query(STORE, [...values, rows[0]?.epoch]);
  }
  const cluster = await openCluster({ url });
  await submitWork(cluster, { id, ...session, onLoss: "continue", request: { prompt: "Go on.", flags: [] } });
  await cluster.close();
  return id;
}

const STORE = `
  with head as (update troupe.session set last_seq = $2 where id = $1)
  insert into troupe.event(session_id, seq, line, epoch) values($1, $2, $3, $4)`;
