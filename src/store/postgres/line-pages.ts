/** Reads logs in pages of lines, without taking the session, as `LogLines` reads those of this machine. */

import { type LinePage, lineJson } from "../log/log-lines.ts";
import type { Database } from "./database.ts";

const PAGE_ROWS = 1_000;
const PAGE_BYTES = 1024 * 1024;

/** Returns the lines after the one with this number. Damaged ones are left out, those that rewinds took out of view are not. */
export async function linePage(database: Database, sessionId: string, after: number): Promise<LinePage> {
  const { rows } = await database.query<{ seq: string; line: string; found: number }>(
    `select seq::text, line, found from (
       select seq, line, count(*) over ()::int as found,
              sum(octet_length(line)) over (order by seq) - octet_length(line) as before
       from (select e.seq, e.line from troupe.event e
             where e.session_id = $1 and e.seq > $2 order by e.seq limit ${PAGE_ROWS}) e) page
     where before < ${PAGE_BYTES} order by page.seq`,
    [sessionId, after],
  );
  const lines = rows.flatMap(({ seq, line }) => {
    const json = lineJson(Buffer.from(line));
    return json === undefined ? [] : [{ number: Number(seq), json }];
  });
  const [last] = rows.slice(-1);
  const isEnd = rows.length < PAGE_ROWS && rows.length === (rows[0]?.found ?? 0);
  return { lines, last: Number(last?.seq ?? after), isEnd };
}
