/** Reads sessions in the database without taking them. Each method reads only the rows that it needs. */

import type { SessionEvent } from "../../protocol/event.ts";
import type { Damage } from "../damage.ts";
import { decodeLine } from "../log/line.ts";
import { visibleEvents } from "../log/rewound.ts";
import { type Scan, type Scanned, scanEvents } from "../log-scan.ts";
import { MAX_RECENT_BYTES, MIN_RECENT_LOG_BYTES, type RecentEvents } from "../recent.ts";
import { checkSessionId } from "../session-id.ts";
import { failTo } from "../storage-error.ts";
import type { SessionSummary, Store } from "../store.ts";
import { parseSummary, summaryOfEvents } from "../summary.ts";
import type { Database } from "./database.ts";
import { decodedRows, PAGE_ROWS, readRows } from "./rows.ts";

type StoreReader = Pick<Store, "read" | "events" | "recent" | "scan" | "revision" | "revisions" | "list" | "ids">;

/** `check` throws for a session that does not exist. */
export function storeReader(database: Database, check: (sessionId: string) => Promise<string>): StoreReader {
  return {
    async read(sessionId) {
      const all = await readRows(database, await check(sessionId)).catch(failTo("read the session log"));
      return { ...visibleEvents(all.events), damage: all.damage };
    },
    async *events(sessionId, onDamage) {
      yield* eventsIn(database, await check(sessionId), onDamage);
    },
    recent: async (sessionId, isStart) =>
      readRecent(database, await check(sessionId), isStart).catch(failTo("read the session log")),
    scan: async (sessionId, what) => scan(database, await check(sessionId), what).catch(failTo("read the session log")),
    async revision(sessionId) {
      const { rows } = await database.query<{ change: string }>(
        "select change::text from troupe.session where id = $1 and last_seq > 0",
        [checkSessionId(sessionId)],
      );
      return rows[0]?.change;
    },
    ...newestSessions(database),
    async ids() {
      const { rows } = await database.query<{ id: string }>(`select id from troupe.session ${NEWEST_FIRST}`);
      return rows.map(({ id }) => id);
    },
  };
}

const NEWEST_FIRST = "where last_seq > 0 order by change desc";

/** Returns the events at positions `from` to `to` of the view. Reads the whole log only if it was rewound or is damaged. */
export async function pageOf(
  database: Database,
  sessionId: string,
  { from, to, isClean }: { readonly from: number; readonly to: number; readonly isClean: boolean },
): Promise<readonly SessionEvent[]> {
  if (to <= from) return [];
  if (isClean && !(await isRewound(database, sessionId))) {
    const { rows } = await database.query<{ seq: string; line: string }>(
      `select e.seq::text as seq, e.line from troupe.event e
       where e.session_id = $1 and e.seq > $2 and e.seq <= $3 order by e.seq`,
      [sessionId, Math.max(0, from), to],
    );
    const { events, damage } = decodedRows(rows);
    if (damage.length === 0) return events;
  }
  const { events } = await readRows(database, sessionId);
  return visibleEvents(events).events.slice(Math.max(0, from), Math.max(0, to));
}

/** Answered by an index: rewinds are rare. May be true for an event that only contains such an object. */
async function isRewound(database: Database, sessionId: string): Promise<boolean> {
  const { count } = await database.query(
    `select 1 from troupe.event e where e.session_id = $1 and e.line like '%"type":"troupe.rewound"%' limit 1`,
    [sessionId],
  );
  return count > 0;
}

async function* eventsIn(
  database: Database,
  sessionId: string,
  onDamage?: (damage: readonly Damage[]) => void,
): AsyncGenerator<SessionEvent> {
  const fail = failTo("read the session log");
  if (await isRewound(database, sessionId).catch(fail)) {
    const { events, damage } = await readRows(database, sessionId).catch(fail);
    if (damage.length > 0) onDamage?.(damage);
    yield* visibleEvents(events).events;
    return;
  }
  const found: Damage[] = [];
  for (let after = 0; ; ) {
    const { rows } = await database
      .query<{ seq: string; line: string }>(
        `select e.seq::text as seq, e.line from troupe.event e
         where e.session_id = $1 and e.seq > $2 order by e.seq limit $3`,
        [sessionId, after, PAGE_ROWS],
      )
      .catch(fail);
    const { events, damage } = decodedRows(rows);
    found.push(...damage);
    yield* events;
    if (rows.length < PAGE_ROWS) break;
    after = Number(rows.at(-1)?.seq);
  }
  if (found.length > 0) onDamage?.(found);
}

/** Reads backwards from the end, page by page. */
async function readRecent(
  database: Database,
  sessionId: string,
  isStart: (event: SessionEvent) => boolean,
): Promise<RecentEvents | undefined> {
  const { rows } = await database.query<{ bytes: string; last: string }>(
    `select coalesce(sum(octet_length(line)), 0)::text as bytes, coalesce(max(seq), 0)::text as last
     from troupe.event where session_id = $1`,
    [sessionId],
  );
  if (Number(rows[0]?.bytes ?? 0) < MIN_RECENT_LOG_BYTES || (await isRewound(database, sessionId))) return undefined;
  const pages: (readonly SessionEvent[])[] = [];
  let [to, bytes] = [Number(rows[0]?.last ?? 0), 0];
  while (to > 0 && bytes <= MAX_RECENT_BYTES) {
    const before = Math.max(0, to - PAGE_ROWS);
    const page = await database.query<{ seq: string; line: string }>(
      `select e.seq::text as seq, e.line from troupe.event e
       where e.session_id = $1 and e.seq > $2 and e.seq <= $3 order by e.seq`,
      [sessionId, before, to],
    );
    const { events, damage } = decodedRows(page.rows);
    if (damage.length > 0 || events.length !== to - before) return undefined;
    const from = events.findLastIndex(isStart);
    if (from !== -1) return { events: [events.slice(from), ...pages].flat(), before: before + from };
    pages.unshift(events);
    bytes += page.rows.reduce((sum, { line }) => sum + line.length, 0);
    to = before;
  }
  return undefined;
}

/** The type of an event stands before its data. No object may stand before it: that could contain another type. */
const TYPE = `substring(e.line from '^\\{[^{]*?"type":"([^"]*)"')`;

/** The server counts and selects; only events of the wanted types are sent. */
async function scan(database: Database, sessionId: string, what: Scan): Promise<Scanned> {
  if (await isRewound(database, sessionId)) {
    const { events } = await readRows(database, sessionId);
    return scanEvents(visibleEvents(events).events, what);
  }
  const { types, toEventId, begin } = what;
  const onEvent = begin();
  const { rows: ends } = await database.query<{ seq: string | null }>(
    "select min(seq)::text as seq from troupe.event where session_id = $1 and starts_with(line, $2)",
    [sessionId, `{"id":${JSON.stringify(toEventId ?? "")},`],
  );
  const end = ends[0]?.seq ?? null;
  const { rows: counts } = await database.query<{ count: string }>(
    "select count(*)::text as count from troupe.event where session_id = $1 and ($2::bigint is null or seq < $2)",
    [sessionId, end],
  );
  for (let after = 0, isEnd = false; !isEnd; ) {
    const { rows } = await database.query<{ seq: string; line: string }>(
      `select e.seq::text as seq, e.line from troupe.event e
       where e.session_id = $1 and e.seq > $2 and ($3::bigint is null or e.seq < $3)
         and coalesce(${TYPE} = any($4), true)
       order by e.seq limit $5`,
      [sessionId, after, end, [...types], PAGE_ROWS],
    );
    for (const event of decodedRows(rows).events) if (types.has(event.type)) onEvent(event);
    isEnd = rows.length < PAGE_ROWS;
    after = Number(rows.at(-1)?.seq ?? after);
  }
  return { count: Number(counts[0]?.count ?? 0), isFound: toEventId === undefined || end !== null };
}

/** Sessions of a list: those that changed last, and besides some by their ids. */
interface Chosen {
  readonly limit: number;
  readonly besides: readonly string[];
}

/** Reads all sessions, or the chosen ones. */
export function newestSessions(database: Database, chosen?: Chosen): Pick<Store, "revisions" | "list"> {
  return { revisions: () => revisions(database, chosen), list: () => list(database, chosen) };
}

const CHOSEN = `where last_seq > 0 and (id = any($2) or id in (
  select id from troupe.session where last_seq > 0 order by change desc limit $1)) order by change desc`;

async function sessionRows<Row extends object>(database: Database, columns: string, chosen: Chosen | undefined) {
  const sql = `select id, ${columns} from troupe.session`;
  const { rows } = await (chosen
    ? database.query<Row & { id: string }>(`${sql} ${CHOSEN}`, [chosen.limit, chosen.besides])
    : database.query<Row & { id: string }>(`${sql} ${NEWEST_FIRST}`));
  return rows;
}

async function revisions(database: Database, chosen: Chosen | undefined) {
  const columns = "change::text, (extract(epoch from changed_at) * 1000)::text as ms";
  const rows = await sessionRows<{ change: string; ms: string }>(database, columns, chosen);
  return rows.map(({ id, change, ms }) => ({ sessionId: id, revision: change, changedMs: Number(ms) }));
}

/** Sessions without a summary are summarised from this many lines at their beginning. */
const HEAD_ROWS = 64;

async function list(database: Database, chosen: Chosen | undefined): Promise<readonly SessionSummary[]> {
  const columns = "summary, changed_at as changed";
  const rows = await sessionRows<{ summary: string | null; changed: Date }>(database, columns, chosen);
  const known = await Promise.all(
    rows.map(({ id, summary }) => (summary === null ? undefined : parseSummary(summary, id).catch(() => undefined))),
  );
  const heads = await headsOf(
    database,
    rows.filter((_, index) => known[index] === undefined).map(({ id }) => id),
  );
  return rows.map(
    ({ id, changed }, index) =>
      known[index] ?? summaryOfEvents(visibleEvents(heads.get(id) ?? []).events, id, changed.toISOString()),
  );
}

/** Reads the beginnings of several logs with one statement. */
async function headsOf(database: Database, ids: readonly string[]): Promise<Map<string, SessionEvent[]>> {
  const heads = new Map<string, SessionEvent[]>();
  if (ids.length === 0) return heads;
  const { rows } = await database.query<{ id: string; line: string }>(
    `select s.id, e.line from unnest($1::text[]) as s(id) cross join lateral (
       select line, seq from troupe.event where session_id = s.id order by seq limit $2) e
     order by s.id, e.seq`,
    [ids, HEAD_ROWS],
  );
  for (const { id, line } of rows) {
    const decoded = decodeLine(Buffer.from(line));
    if (decoded.kind !== "bad") heads.set(id, [...(heads.get(id) ?? []), decoded.event]);
  }
  return heads;
}
