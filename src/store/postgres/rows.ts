/** Reads the lines of a session, verifies them, and stores and uses snapshots of long logs. */

import { isObject, parseJson } from "../../lib/json.ts";
import type { Queries } from "../../lib/queries.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Damage } from "../damage.ts";
import { decodeLine, noRecord, type RecordLink } from "../log/line.ts";
import { visibleEvents } from "../log/rewound.ts";
import { minLogBytes, type SnapshotRules } from "../log/snapshot.ts";
import type { Database } from "./database.ts";
import type { LogTail } from "./writer.ts";

export interface RowContent {
  readonly events: readonly SessionEvent[];
  readonly damage: readonly Damage[];
  readonly last: RecordLink;
  readonly bytes: number;
}

export interface LoadedRows {
  readonly events: readonly SessionEvent[];
  readonly removed: readonly SessionEvent[];
  readonly count: number;
  readonly damage: readonly Damage[];
  readonly last: RecordLink;
}

export const noRows: LoadedRows = { events: [], removed: [], count: 0, damage: [], last: noRecord };

export const PAGE_ROWS = 1000;

/** Reads the lines after `after`, page by page. */
export async function readRows(
  database: Queries,
  sessionId: string,
  after: RecordLink = noRecord,
): Promise<RowContent> {
  const events: SessionEvent[] = [];
  const damage: Damage[] = [];
  let last = after;
  let bytes = 0;
  for (;;) {
    const { rows } = await database.query<{ seq: string; line: string }>(
      "select e.seq::text as seq, e.line from troupe.event e where e.session_id = $1 and e.seq > $2 order by e.seq limit $3",
      [sessionId, last.seq, PAGE_ROWS],
    );
    const page = decodedRows(rows, bytes);
    for (const event of page.events) events.push(event);
    damage.push(...page.damage);
    bytes += page.bytes;
    last = page.last ?? last;
    if (rows.length < PAGE_ROWS) return { events, damage, last, bytes };
  }
}

interface DecodedRows extends Omit<RowContent, "last"> {
  /** Undefined if there are no rows. */
  readonly last: RecordLink | undefined;
}

/** `offset` is the number of bytes before the rows. */
export function decodedRows(rows: readonly { seq: string; line: string }[], offset = 0): DecodedRows {
  const events: SessionEvent[] = [];
  const damage: Damage[] = [];
  let last: RecordLink | undefined;
  let bytes = 0;
  for (const { seq, line } of rows) {
    const decoded = decodeLine(Buffer.from(line));
    if (decoded.kind === "bad") {
      const { damage: kind, message } = decoded;
      damage.push({ kind, message, line: Number(seq), offset: offset + bytes, bytes: line.length });
      last = { seq: Number(seq), crc: 0 };
    } else {
      events.push(decoded.event);
      last = { seq: Number(seq), crc: decoded.kind === "record" ? decoded.crc : 0 };
    }
    bytes += line.length;
  }
  return { events, damage, last, bytes };
}

/** Loads what a session needs: from its snapshot and the lines after it, or from all lines. */
export async function loadRows(
  database: Queries,
  sessionId: string,
  rules: SnapshotRules | undefined,
): Promise<LoadedRows> {
  const snapshot = rules && (await readRowSnapshot(database, sessionId, rules.version));
  if (snapshot) {
    const { events, damage, last } = await readRows(database, sessionId, snapshot.last);
    if (!events.some(({ type }) => type === "troupe.rewound")) {
      return {
        events: [...snapshot.events, ...events],
        removed: [],
        count: snapshot.count + events.length,
        ...{ damage, last },
      };
    }
  }
  const { events: all, damage, last, bytes } = await readRows(database, sessionId);
  const { events, removed } = visibleEvents(all);
  const isLong = rules !== undefined && bytes >= minLogBytes(rules) && events.some((event) => rules.isMilestone(event));
  if (!isLong) return { events, removed, count: events.length, damage, last };
  const own = { events: rules.condense(events), removed: rules.condenseRemoved(removed) };
  return { ...own, count: events.length, damage, last };
}

interface RowSnapshot {
  readonly events: readonly SessionEvent[];
  readonly count: number;
  readonly last: RecordLink;
}

/** Returns `undefined` unless the log still has the very line that the snapshot ends with. */
async function readRowSnapshot(database: Queries, sessionId: string, rules: number): Promise<RowSnapshot | undefined> {
  const { rows } = await database.query<{ seq: string; crc: string; body: string; line: string }>(
    `select s.seq::text, s.crc::text, s.body, e.line from troupe.snapshot s
     join troupe.event e on e.session_id = s.session_id and e.seq = s.seq
     where s.session_id = $1 and s.rules = $2`,
    [sessionId, rules],
  );
  const row = rows[0];
  if (!row) return undefined;
  const line = decodeLine(Buffer.from(row.line));
  const json = parseJson(row.body);
  if (line.kind !== "record" || line.crc !== Number(row.crc) || !json.ok || !isObject(json.value)) return undefined;
  const { events, count } = json.value as unknown as Omit<RowSnapshot, "last">;
  return { events, count, last: { seq: Number(row.seq), crc: line.crc } };
}

export async function writeRowSnapshot(
  database: Database,
  what: {
    readonly tail: LogTail;
    readonly rules: number;
    readonly events: readonly SessionEvent[];
    readonly count: number;
  },
): Promise<boolean> {
  const { tail, rules, events, count } = what;
  const { count: stored } = await database.query(
    `insert into troupe.snapshot(session_id, seq, crc, rules, body)
     select id, $3, $4, $5, $6 from troupe.session where id = $1 and epoch = $2 and last_seq = $3
     on conflict (session_id) do update set seq = excluded.seq, crc = excluded.crc, rules = excluded.rules,
       body = excluded.body`,
    [
      tail.sessionId,
      tail.epoch,
      tail.acknowledged.seq,
      tail.acknowledged.crc,
      rules,
      JSON.stringify({ events, count }),
    ],
  );
  return stored === 1;
}
