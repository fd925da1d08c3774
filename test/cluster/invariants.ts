/** Checks what must hold for every session in a database, from its rows alone. */

import type { Queries } from "../../src/lib/queries.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { decodeLine } from "../../src/store/log/line.ts";

interface Row {
  readonly session: string;
  readonly seq: string;
  readonly epoch: string;
  readonly line: string;
}

/** Returns one line for each violation. */
export async function violations(queries: Queries): Promise<readonly string[]> {
  const { rows } = await queries.query<Row>(
    `select e.session_id as session, e.seq::text as seq, e.epoch::text as epoch, e.line
     from troupe.event e order by e.session_id, e.seq`,
  );
  const sessions = new Map<string, Row[]>();
  for (const row of rows) sessions.set(row.session, [...(sessions.get(row.session) ?? []), row]);
  return [...sessions].flatMap(([id, all]) => [...chain(id, all), ...calls(id, all), ...answers(id, all)]);
}

/** Numbers have no gaps, epochs never fall, and every line names the checksum of the one before. */
function* chain(id: string, rows: readonly Row[]): Generator<string> {
  let [seq, epoch, crc] = [0, 0, 0];
  for (const row of rows) {
    if (Number(row.seq) !== seq + 1) yield `${id}: line ${row.seq} follows ${seq}`;
    if (Number(row.epoch) < epoch) yield `${id}: line ${row.seq} has epoch ${row.epoch} after ${epoch}`;
    const line = decodeLine(Buffer.from(row.line));
    if (line.kind !== "record") yield `${id}: line ${row.seq} is ${line.kind}`;
    else if (line.prev !== crc || line.seq !== seq + 1) yield `${id}: line ${row.seq} is not linked to the one before`;
    [seq, epoch, crc] = [Number(row.seq), Number(row.epoch), line.kind === "record" ? line.crc : 0];
  }
}

const eventsOf = (rows: readonly Row[]): SessionEvent[] =>
  rows.flatMap(({ line }) => {
    const decoded = decodeLine(Buffer.from(line));
    return decoded.kind === "bad" ? [] : [decoded.event];
  });

/** Every started call has exactly one end. A scripted model may use an id again after that. */
function* calls(id: string, rows: readonly Row[]): Generator<string> {
  const open = new Set<string>();
  for (const event of eventsOf(rows)) {
    if (event.type === "tool.execution_start") {
      const { toolCallId } = event.data;
      if (open.has(toolCallId)) yield `${id}: call ${toolCallId} started twice`;
      open.add(toolCallId);
    }
    if (event.type === "tool.execution_complete" && !open.delete(event.data.toolCallId)) {
      yield `${id}: call ${event.data.toolCallId} ended twice`;
    }
  }
  for (const call of open) yield `${id}: call ${call} has no end`;
}

/** Each work has at most one complete answer of the main agent, and its outcome is that answer. */
function* answers(id: string, rows: readonly Row[]): Generator<string> {
  const all = eventsOf(rows).filter(({ agentId }) => agentId === undefined);
  const works = new Set(all.flatMap((event) => (event.type === "user.message" ? [event.data.source ?? ""] : [])));
  const complete = all.filter(
    (event) => event.type === "assistant.message" && (event.data.toolRequests ?? []).length === 0,
  );
  if (complete.length > works.size) yield `${id}: ${complete.length} answers to ${works.size} pieces of work`;
}
