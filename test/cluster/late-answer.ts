/**
 * A worker that writes until another one takes the session: after that one might have read the log. A trigger of the
 * database stores these lines in the statement that takes the session.
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

/**
 * Submits a session whose log is that of another one, up to the call that starts an agent on another worker. The lines that
 * created the agent and submitted its work come late. Its work has ended. Returns the ids of the new session and its work.
 */
export async function startAgentLate(
  { url, database }: { readonly url: string; readonly database: Database },
  before: { readonly sessionId: string; readonly workId: string },
): Promise<{ readonly sessionId: string; readonly workId: string }> {
  await database.query(TRIGGER);
  const { rows } = await database.query<{ line: string }>(
    "select line from troupe.event where session_id = $1 order by seq",
    [before.sessionId],
  );
  const events = rows.flatMap(({ line }) => {
    const decoded = decodeLine(Buffer.from(line));
    return decoded.kind === "record" ? [decoded.event] : [];
  });
  const created = events.findIndex(({ type }) => type === "troupe.task_created");
  const sent = events.findIndex(({ type }) => type === "troupe.task_sent");
  const works = events.flatMap((event) => (event.type === "troupe.task_sent" ? [event.data.workId] : []));
  const again = new Map([before.sessionId, before.workId, ...works].map((id) => [id, crypto.randomUUID()]));
  const renamed = (text: string): string =>
    [...again].reduce((changed, [id, other]) => changed.replaceAll(id, other), text);
  const sessionId = renamed(before.sessionId);
  await database.query("insert into troupe.session(id, epoch, holder) values($1, 1, 'lost')", [sessionId]);
  let link: RecordLink = noRecord;
  for (const [index, event] of events.slice(0, sent + 1).entries()) {
    const encoded = encodeLine(JSON.parse(renamed(JSON.stringify(event))) as SessionEvent, link);
    link = encoded.link;
    const values = [sessionId, link.seq, encoded.bytes.toString().trimEnd()];
    if (index >= created) await database.query("insert into late_line values($1, $2, $3)", values);
    else await database.query(STORE, [...values, 1]);
  }
  const { rows: all } = await database.query<{ work: string }>(
    "select row_to_json(w)::text as work from troupe.work w where id = $1 or id = any($2)",
    [before.workId, works],
  );
  const outcomes = { outcome: null, ended_at: null, started_at: null, starts: 0, worker: null, taken_at: null };
  for (const { work } of all) {
    const row = JSON.parse(renamed(work)) as { id: string };
    const open = row.id === renamed(before.workId) ? outcomes : {};
    await database.query("insert into troupe.work select * from json_populate_record(null::troupe.work, $1)", [
      JSON.stringify({ ...row, ...open }),
    ]);
  }
  const cluster = await openCluster({ url });
  await cluster.engine.submit({ id: renamed(before.workId), sessionId, pool: "default", tenant: "default" });
  await cluster.close();
  return { sessionId, workId: renamed(before.workId) };
}

const STORE = `
  with head as (update troupe.session set last_seq = $2 where id = $1)
  insert into troupe.event(session_id, seq, line, epoch) values($1, $2, $3, $4)`;
