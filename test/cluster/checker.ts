/**
 * Checks what must hold for a cluster, from rows, the engine's states and a ledger of effects that lies outside the
 * database. It uses nothing of the program except the decoder of log lines. `record.ts` collects the input.
 */

import type { SessionEvent } from "../../src/protocol/event.ts";
import { decodeLine } from "../../src/store/log/line.ts";

export interface LineRow {
  readonly session: string;
  readonly seq: number;
  readonly epoch: number;
  readonly line: string;
}

export interface WorkRecord {
  readonly id: string;
  readonly session: string;
  readonly outcome: { readonly kind: string; readonly answer?: string; readonly message?: string } | null;
  /** States of all rows that the engine has for this work. */
  readonly engine: readonly string[];
}

/** One effect of a tool, as the outside world saw it. */
export interface Effect {
  readonly session: string;
  readonly worker: string;
  /** The command of the call contains it. */
  readonly token: string;
  readonly atMs: number;
}

/** One taking of a session by a worker. */
export interface Take {
  readonly session: string;
  readonly epoch: number;
  readonly holder: string;
  readonly atMs: number;
}

/** One renewal of a lease. */
export interface Renewal {
  readonly worker: string;
  readonly atMs: number;
  readonly untilMs: number;
}

export interface ClusterRecord {
  /** Sorted by session and number. */
  readonly lines: readonly LineRow[];
  /** Missing parts are not checked. */
  readonly sessions?: readonly { readonly id: string; readonly epoch: number; readonly lastSeq: number }[];
  readonly work?: readonly WorkRecord[];
  readonly effects?: readonly Effect[];
  readonly takes?: readonly Take[];
  readonly renewals?: readonly Renewal[];
  /** Lines that a follower received while the work went on. */
  readonly followed?: readonly Pick<LineRow, "session" | "seq" | "line">[];
  readonly budgets?: readonly BudgetRecord[];
  readonly providers?: readonly ProviderLog[];
}

interface BudgetRecord {
  readonly id: string;
  readonly limit: number;
  /** The largest amount that one call may reserve. */
  readonly oneCall: number;
  /** Costs as the provider counted them. */
  readonly costs: readonly number[];
}

interface ProviderLog {
  readonly id: string;
  readonly limit: number;
  readonly windowMs: number;
  /** Arrival of each request by the provider's own clock. */
  readonly requestsAtMs: readonly number[];
}

/** Returns one line for each violation, beginning with the number of the invariant. */
export function check(record: ClusterRecord): readonly string[] {
  const sessions = new Map<string, LineRow[]>();
  for (const row of record.lines) {
    const rows = sessions.get(row.session);
    if (rows) rows.push(row);
    else sessions.set(row.session, [row]);
  }
  const found: string[] = [];
  for (const [id, rows] of sessions) {
    const events = eventsOf(rows);
    found.push(...chain(id, rows), ...calls(id, events), ...answers(id, events), ...parents(id, events));
    if (record.effects) found.push(...repeats(id, events, record.effects));
  }
  found.push(...heads(record, sessions), ...outcomes(record, sessions), ...zombies(record));
  found.push(...budgetViolations(record), ...rates(record), ...followers(record, sessions));
  return found;
}

const eventsOf = (rows: readonly LineRow[]): SessionEvent[] =>
  rows.flatMap(({ line }) => {
    const decoded = decodeLine(Buffer.from(line));
    return decoded.kind === "bad" ? [] : [decoded.event];
  });

/** I1: numbers have no gaps and every line names the checksum of the one before. I2: epochs never fall. */
function* chain(id: string, rows: readonly LineRow[]): Generator<string> {
  let [seq, epoch, crc] = [0, 0, 0];
  for (const row of rows) {
    if (row.seq !== seq + 1) yield `I1 ${id}: line ${row.seq} follows ${seq}`;
    if (row.epoch < epoch) yield `I2 ${id}: line ${row.seq} has epoch ${row.epoch} after ${epoch}`;
    const line = decodeLine(Buffer.from(row.line));
    if (line.kind !== "record") yield `I1 ${id}: line ${row.seq} is ${line.kind}`;
    else if (line.prev !== crc || line.seq !== seq + 1)
      yield `I1 ${id}: line ${row.seq} is not linked to the one before`;
    [seq, epoch, crc] = [row.seq, row.epoch, line.kind === "record" ? line.crc : 0];
  }
}

/** I1: every event names the one before as its parent, and none is there twice. */
function* parents(id: string, events: readonly SessionEvent[]): Generator<string> {
  const known = new Set<string | null>();
  let last: string | null = null;
  for (const event of events) {
    if (known.has(event.id)) yield `I1 ${id}: event ${event.id} is there twice`;
    if (event.parentId !== last) yield `I1 ${id}: event ${event.id} does not name the one before as its parent`;
    known.add(event.id);
    last = event.id;
  }
}

/** I1, I2: the row of a session has the number of its last line and an epoch that is not below it. */
function* heads({ sessions }: ClusterRecord, lines: ReadonlyMap<string, readonly LineRow[]>): Generator<string> {
  for (const { id, epoch, lastSeq } of sessions ?? []) {
    const last = lines.get(id)?.at(-1);
    if ((last?.seq ?? 0) !== lastSeq) yield `I1 ${id}: the session says line ${lastSeq}, its last line is ${last?.seq}`;
    if ((last?.epoch ?? 0) > epoch)
      yield `I2 ${id}: line ${last?.seq} is of epoch ${last?.epoch}, the session of ${epoch}`;
  }
}

/** I4: every started call has exactly one end. A scripted model may use an id again after that. */
function* calls(id: string, events: readonly SessionEvent[]): Generator<string> {
  const open = new Set<string>();
  for (const event of events) {
    if (event.type === "tool.execution_start") {
      const key = `${event.agentId ?? ""}/${event.data.toolCallId}`;
      if (open.has(key)) yield `I4 ${id}: call ${event.data.toolCallId} started twice`;
      open.add(key);
    }
    if (event.type === "tool.execution_complete") {
      const key = `${event.agentId ?? ""}/${event.data.toolCallId}`;
      if (!open.delete(key)) yield `I4 ${id}: call ${event.data.toolCallId} ended twice`;
    }
  }
  for (const call of open) yield `I4 ${id}: call ${call} has no end`;
}

/** I3: each piece of work has at most one complete answer of the main agent. */
function* answers(id: string, events: readonly SessionEvent[]): Generator<string> {
  const main = events.filter(({ agentId }) => agentId === undefined);
  const works = new Set(main.flatMap((event) => (event.type === "user.message" ? [event.data.source ?? ""] : [])));
  const complete = main.filter((event, index) => isAnswer(event) && !isStopped(main.slice(index + 1)));
  if (complete.length > works.size) yield `I3 ${id}: ${complete.length} answers to ${works.size} pieces of work`;
}

const isAnswer = (event: SessionEvent): boolean =>
  event.type === "assistant.message" && (event.data.toolRequests ?? []).length === 0;

/** Whether a message was cut off when its worker stopped: `after` are the events that follow it. */
const isStopped = (after: readonly SessionEvent[]): boolean =>
  after.find(({ type }) => type === "abort" || type === "user.message" || type === "assistant.message")?.type ===
  "abort";

const TERMINAL = ["done", "failed", "cancelled", "set_aside"];

/** I3: every accepted message has one outcome, and it is in the log. I9: the engine has one terminal state for it. */
function* outcomes({ work }: ClusterRecord, lines: ReadonlyMap<string, readonly LineRow[]>): Generator<string> {
  for (const { id, session, outcome, engine } of work ?? []) {
    if (outcome === null) yield `I3 ${session}: work ${id} has no outcome`;
    if (outcome?.kind === "done" && !isLogged(eventsOf(lines.get(session) ?? []), id, outcome.answer)) {
      yield `I3 ${session}: the answer to work ${id} is not in the log`;
    }
    if (outcome && outcome.kind !== "done" && outcome.kind !== "lost" && !outcome.message) {
      yield `I3 ${session}: work ${id} ended as ${outcome.kind} without a reason`;
    }
    if (engine.length !== 1 || !TERMINAL.includes(engine[0] ?? "")) {
      yield `I9 ${session}: the engine has work ${id} as ${engine.join(", ") || "unknown"}`;
    }
  }
}

function isLogged(events: readonly SessionEvent[], workId: string, answer: string | undefined): boolean {
  const main = events.filter(({ agentId }) => agentId === undefined);
  const from = main.findIndex((event) => event.type === "user.message" && event.data.source === `work-${workId}`);
  return from !== -1 && main.slice(from).some((event) => isAnswer(event) && contentOf(event) === answer);
}

const contentOf = (event: SessionEvent): string | undefined =>
  event.type === "assistant.message" ? event.data.content : undefined;

interface TracedCall {
  readonly token: string;
  /** A call that failed counts as interrupted: the agent knows that its effects are uncertain. */
  end?: "interrupted" | "succeeded";
}

/** I5: an effect happens again only if its call was interrupted or failed, so that the agent knows. Each has a call. */
function* repeats(id: string, events: readonly SessionEvent[], effects: readonly Effect[]): Generator<string> {
  const own = effects.filter(({ session }) => session === id);
  for (const token of new Set(own.map((effect) => effect.token))) {
    const count = own.filter((effect) => effect.token === token).length;
    const traced = callsWith(events, token);
    if (traced.length < count) yield `I5 ${id}: ${count} effects ${token}, ${traced.length} calls in the log`;
    const early = traced.slice(0, -1).filter(({ end }) => end !== "interrupted").length;
    if (early > 0) yield `I5 ${id}: effect ${token} was repeated although its call had succeeded`;
  }
}

/** An agent whose task was interrupted is unknown to the one that started it, and so are the effects of its calls. */
function callsWith(events: readonly SessionEvent[], token: string): readonly TracedCall[] {
  const all: TracedCall[] = [];
  const open = new Map<string, TracedCall>();
  const tasks = new Set<string>();
  for (const event of events) {
    if (event.type === "tool.execution_start" && event.data.toolName === "task") {
      if (JSON.stringify(event.data.arguments ?? {}).includes(token)) tasks.add(event.data.toolCallId);
    }
    if (event.type === "tool.execution_complete" && tasks.has(event.data.toolCallId) && event.data.error) {
      for (const call of all) call.end = "interrupted";
    }
    if (event.type === "tool.execution_start" && event.data.toolName === "bash") {
      if (!JSON.stringify(event.data.arguments ?? {}).includes(token)) continue;
      const call: TracedCall = { token };
      all.push(call);
      open.set(event.data.toolCallId, call);
    }
    if (event.type === "tool.execution_complete") {
      const call = open.get(event.data.toolCallId);
      if (call) call.end = event.data.error ? "interrupted" : "succeeded";
      open.delete(event.data.toolCallId);
    }
  }
  return all;
}

/** I6: no effect by a worker whose lease had expired, or that no longer had the session. */
function* zombies({ effects = [], takes, renewals }: ClusterRecord): Generator<string> {
  for (const { session, worker, token, atMs } of effects) {
    const lease = renewals?.findLast((one) => one.worker === worker && one.atMs <= atMs);
    if (renewals && (!lease || lease.untilMs < atMs)) {
      yield `I6 ${session}: ${worker} made effect ${token} ${lease ? `${Math.round(atMs - lease.untilMs)} ms after its lease` : "without a lease"}`;
    }
    const last = takes?.findLast((take) => take.session === session && take.atMs <= atMs);
    if (takes && last?.holder !== worker)
      yield `I6 ${session}: ${worker} made effect ${token}, but ${last?.holder} had it`;
  }
}

/** I7: a budget pays at most its limit and one reserved call. */
function* budgetViolations({ budgets: all = [] }: ClusterRecord): Generator<string> {
  for (const { id, limit, oneCall, costs } of all) {
    const spent = costs.reduce((sum, cost) => sum + cost, 0);
    if (spent > limit + oneCall) yield `I7 ${id}: ${spent} of ${limit} was spent`;
  }
}

/** I8: the provider never sees more requests in a window than the limit. */
function* rates({ providers = [] }: ClusterRecord): Generator<string> {
  for (const { id, limit, windowMs, requestsAtMs } of providers) {
    const sorted = requestsAtMs.toSorted((a, b) => a - b);
    const most = sorted.reduce((max, from, index) => {
      const after = sorted.findIndex((at, other) => other > index && at >= from + windowMs);
      return Math.max(max, (after === -1 ? sorted.length : after) - index);
    }, 0);
    if (most > limit) yield `I8 ${id}: ${most} requests in ${windowMs} ms, the limit is ${limit}`;
  }
}

/** I10: a follower received exactly the lines that a reader finds. */
function* followers({ followed }: ClusterRecord, lines: ReadonlyMap<string, readonly LineRow[]>): Generator<string> {
  const next = new Map<string, number>();
  for (const { session, seq, line } of followed ?? []) {
    const expected = next.get(session) ?? 1;
    if (seq !== expected) yield `I10 ${session}: the follower got line ${seq} after ${expected - 1}`;
    if (lines.get(session)?.[seq - 1]?.line !== line) yield `I10 ${session}: the follower has another line ${seq}`;
    next.set(session, seq + 1);
  }
  if (!followed) return;
  for (const [session, rows] of lines) {
    const count = (next.get(session) ?? 1) - 1;
    if (count !== rows.length) yield `I10 ${session}: the follower has ${count} of ${rows.length} lines`;
  }
}
