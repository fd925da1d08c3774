/**
 * Writes the lines of all sessions of one process to the database, in one statement at a time (group commit).
 *
 * - A line is stored only while its session has the writer's epoch: a process that lost the session cannot write.
 * - A barrier is a commit that waits for the server's disk. Other lines are committed without waiting, and are held
 *   in memory until the session's next barrier, because a crash of the server may lose them.
 * - While the server is unreachable, writes wait and then look up what was committed. Only a lost session or a long outage is
 *   an error.
 */

import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { encodeLine, noRecord, type RecordLink } from "../log/line.ts";
import { storageError } from "../storage-error.ts";
import type { Database } from "./database.ts";
import { notifying } from "./notifications.ts";

export interface GroupWriterOptions {
  readonly database: Database;
  /** How long a write waits for an unreachable server (default: 60 s). */
  readonly patienceMs?: number;
  /** Reports the begin and the end of an outage, one line each. */
  report?(line: string): void;
}

interface Line {
  readonly text: string;
  readonly link: RecordLink;
  readonly barrier: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** The write position of one session. */
export class LogTail {
  readonly sessionId: string;
  /** Set when the session is taken. Lines wait until then. */
  epoch: string | undefined;
  /** Takes a new session: sets `epoch` or throws. */
  enter: () => Promise<void> = async () => undefined;
  entering: Promise<void> | undefined;
  readonly fenced = new AbortController();
  failure: TroupeError | undefined;
  /** Acknowledged lines that a crash of the server may lose, oldest first. */
  unsynced: Line[] = [];
  waiting: Line[] = [];
  /** The last acknowledged line. */
  acknowledged: RecordLink;
  /** The last line that was appended. */
  last: RecordLink;

  constructor(sessionId: string, last: RecordLink = noRecord, epoch?: string) {
    this.sessionId = sessionId;
    this.epoch = epoch;
    this.acknowledged = last;
    this.last = last;
  }
}

/** One session's part of a statement: the lines from `from` on. */
interface Part {
  readonly tail: LogTail;
  readonly batch: readonly Line[];
  /** The number of the last line that the server has. */
  from: number;
}

const PATIENCE_MS = 60_000;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 1000;
/** Bounds one statement. A single longer line is sent alone. */
const MAX_STATEMENT_BYTES = 8 * 1024 * 1024;

export class GroupWriter {
  readonly #options: GroupWriterOptions;
  readonly #dirty = new Set<LogTail>();
  #writing: Promise<void> | undefined;

  constructor(options: GroupWriterOptions) {
    this.#options = options;
  }

  /** Resolves when the line is committed. Takes a new session first, with `tail.enter`. */
  append(tail: LogTail, event: SessionEvent, barrier: boolean): Promise<void> {
    if (tail.failure) return Promise.reject(tail.failure);
    return new Promise((resolve, reject) => {
      const { bytes, link } = encodeLine(event, tail.last);
      tail.last = link;
      tail.waiting.push({ text: bytes.toString("utf8", 0, bytes.length - 1), link, barrier, resolve, reject });
      if (tail.epoch !== undefined) this.#wake(tail);
      else if (tail.waiting.length === 1) void this.#enter(tail);
    });
  }

  #wake(tail: LogTail): void {
    this.#dirty.add(tail);
    this.#writing ??= this.#run();
  }

  async #enter(tail: LogTail): Promise<void> {
    tail.entering = this.#enterPatiently(tail);
    try {
      await tail.entering;
      this.#wake(tail);
    } catch (error) {
      this.#fail(tail, [], storageError("create the session", error));
    } finally {
      tail.entering = undefined;
    }
  }

  /** Waits while the server is unreachable. Entering twice is the same as entering once, except for the epoch. */
  async #enterPatiently(tail: LogTail): Promise<void> {
    const { patienceMs = PATIENCE_MS } = this.#options;
    const end = performance.now() + patienceMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
      try {
        return await tail.enter();
      } catch (error) {
        const cause = error instanceof TroupeError ? error.cause : error;
        if (performance.now() > end || cause === undefined || isPermanent(cause)) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** Resolves when everything appended so far is acknowledged or rejected. */
  async settled(tail: LogTail): Promise<void> {
    await tail.entering?.catch(() => undefined);
    while (this.#writing && (tail.waiting.length > 0 || this.#dirty.has(tail))) await this.#writing;
    await this.#writing;
  }

  /** Resolves when everything acknowledged survives a crash of the server. */
  async sync(tail: LogTail): Promise<void> {
    await this.settled(tail);
    if (tail.failure) throw tail.failure;
    if (tail.unsynced.length === 0) return;
    await this.#write([{ tail, batch: [], from: tail.acknowledged.seq }], true);
  }

  async #run(): Promise<void> {
    // Lines that are appended in the same tick share a statement.
    await Promise.resolve();
    try {
      while (this.#dirty.size > 0) {
        const parts = this.#nextParts();
        await this.#write(
          parts,
          parts.some(({ batch }) => batch.some(({ barrier }) => barrier)),
        );
      }
    } finally {
      this.#writing = undefined;
    }
  }

  #nextParts(): Part[] {
    const parts: Part[] = [];
    let bytes = 0;
    // Sorted, so that two processes lock rows in the same order.
    for (const tail of [...this.#dirty].sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1))) {
      if (bytes > MAX_STATEMENT_BYTES) break;
      let count = 0;
      while (count < tail.waiting.length && (count === 0 || bytes < MAX_STATEMENT_BYTES)) {
        bytes += tail.waiting[count]?.text.length ?? 0;
        count++;
      }
      const batch = tail.waiting.splice(0, count);
      if (tail.waiting.length === 0) this.#dirty.delete(tail);
      if (batch.length > 0) parts.push({ tail, batch, from: tail.acknowledged.seq });
    }
    return parts;
  }

  /** Writes the parts, and waits while the server is unreachable. Each part ends acknowledged or failed. */
  async #write(parts: readonly Part[], barrier: boolean): Promise<void> {
    const { patienceMs = PATIENCE_MS } = this.#options;
    const end = performance.now() + patienceMs;
    let open = parts;
    let mustSync = barrier;
    let isWaiting = false;
    for (let pauseMs = FIRST_PAUSE_MS; open.length > 0; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
      try {
        const stored = await this.#send(open, mustSync);
        for (const part of open) if (stored.has(keyOf(part.tail))) this.#acknowledge(part, mustSync);
        open = open.filter(({ tail }) => !stored.has(keyOf(tail)));
        if (open.length > 0) open = await this.#lookUp(open);
      } catch (error) {
        if (performance.now() > end || isPermanent(error)) {
          for (const { tail, batch } of open) this.#fail(tail, batch, storageError("write the session log", error));
          return;
        }
        if (!isWaiting) this.#options.report?.(`the database cannot be written, waiting: ${reasonOf(error)}`);
        isWaiting = true;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        open = await this.#lookUp(open).catch(() => open);
      }
      // A server that crashed may have lost lines that it had acknowledged. Only a synced commit proves that it has them.
      mustSync = true;
    }
    if (isWaiting) this.#options.report?.("the database can be written again");
  }

  /** Returns the keys of the tails whose lines were stored. */
  async #send(parts: readonly Part[], mustSync: boolean): Promise<ReadonlySet<string>> {
    const text = mustSync ? APPEND : APPEND_UNSYNCED;
    const { rows } = await this.#options.database.query<{ id: string; epoch: string }>(text, valuesOf(parts));
    return new Set(rows.map(({ id: sessionId, epoch }) => keyOf({ sessionId, epoch })));
  }

  #acknowledge({ tail, batch }: Part, synced: boolean): void {
    const last = batch.at(-1);
    if (last) tail.acknowledged = last.link;
    // It says nothing about other sessions: the server may have crashed since their lines were acknowledged.
    if (synced) tail.unsynced = [];
    else tail.unsynced.push(...batch);
    for (const { resolve } of batch) resolve();
  }

  /** Finds out what the server has. Acknowledges or fails what is decided, and returns the rest. */
  async #lookUp(parts: readonly Part[]): Promise<readonly Part[]> {
    const ids = parts.map(({ tail }) => tail.sessionId);
    const { rows } = await this.#options.database.query<{ id: string; epoch: string; last: string }>(
      "select id, epoch::text, last_seq::text as last from troupe.session where id = any($1)",
      [ids],
    );
    const found = new Map(rows.map((row) => [row.id, row]));
    return parts.filter((part) => {
      const { tail, batch } = part;
      const row = found.get(tail.sessionId);
      if (!row || row.epoch !== tail.epoch) {
        tail.fenced.abort();
        this.#fail(tail, batch, takenOver(tail.sessionId));
        return false;
      }
      const target = batch.at(-1)?.link.seq ?? tail.acknowledged.seq;
      const oldest = tail.acknowledged.seq - tail.unsynced.length;
      const last = Number(row.last);
      if (last < oldest || last > target) {
        this.#fail(tail, batch, changedElsewhere(tail.sessionId));
        return false;
      }
      part.from = last;
      return true;
    });
  }

  #fail(tail: LogTail, batch: readonly Line[], failure: TroupeError): void {
    tail.failure = failure;
    this.#dirty.delete(tail);
    for (const { reject } of [...batch, ...tail.waiting]) reject(failure);
    tail.waiting = [];
    tail.last = tail.acknowledged;
  }
}

/** A process may have a session under two epochs: it lost the session and got it again. */
const keyOf = ({ sessionId, epoch }: Pick<LogTail, "sessionId" | "epoch">): string => `${sessionId} ${epoch}`;

/** Lines after `from`: those that are acknowledged but missing, and those of the batch. */
function linesOf({ tail, batch, from }: Part): readonly Line[] {
  return [...tail.unsynced, ...batch].filter(({ link }) => link.seq > from);
}

function valuesOf(parts: readonly Part[]): unknown[] {
  const lines = parts.flatMap((part) => linesOf(part).map((line) => ({ tail: part.tail, line })));
  return [
    parts.map(({ tail }) => tail.sessionId),
    parts.map(({ tail }) => tail.epoch),
    parts.map(({ from }) => from),
    parts.map(({ tail, batch }) => batch.at(-1)?.link.seq ?? tail.acknowledged.seq),
    lines.map(({ tail }) => tail.sessionId),
    lines.map(({ line }) => line.link.seq),
    lines.map(({ line }) => line.text),
    lines.map(({ tail }) => tail.epoch),
  ];
}

/**
 * Returns the statement that appends. Without `sync` its commit does not wait for the server's disk. It is one statement,
 * because a process that is frozen in a transaction holds the row of its session, and no other worker could take it.
 */
const appendStatement = ({ sync }: { readonly sync: boolean }): string => `
  with ${sync ? "" : "relaxed as (select set_config('synchronous_commit', 'off', true)), "}given as (
    select g.* from ${sync ? "" : "relaxed cross join "}
      unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) as g(id, epoch, before, last)
  ), own as (
    update troupe.session s
    set last_seq = g.last, change = nextval('troupe.change'), changed_at = clock_timestamp()
    from given g where s.id = g.id and s.epoch = g.epoch and s.last_seq = g.before
    returning s.id, s.epoch
  ), told as (
    select ${notifying("events", "w.session_id")}
    from troupe.watch w join own on own.id = w.session_id where w.until > clock_timestamp()
  ), added as (
    insert into troupe.event(session_id, seq, epoch, line)
    select own.id, e.seq, own.epoch, e.line
    from own join unnest($5::text[], $6::bigint[], $7::text[], $8::bigint[]) as e(id, seq, line, epoch)
      on e.id = own.id and e.epoch = own.epoch
  )
  select id, epoch::text, (select count(*) from told) as told from own`;

const APPEND = appendStatement({ sync: true });
const APPEND_UNSYNCED = appendStatement({ sync: false });

/** Errors of Postgres that waiting does not cure: bad data, missing tables, missing rights. */
const PERMANENT = /^(22|23|42|28|3D|3F)/;

function isPermanent(error: unknown): boolean {
  if (error instanceof TroupeError) return true;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return PERMANENT.test(code);
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const LOST_FENCE = new Error("The session has another epoch.");

/** Whether the error says that this process has lost the session. */
export const isTakenOver = (error: unknown): boolean =>
  error === LOST_FENCE || (error instanceof Error && isTakenOver(error.cause));

export function takenOver(sessionId: string): TroupeError {
  return new TroupeError("storage", `Another process has taken over session ${sessionId}.`, {
    cause: LOST_FENCE,
    hint: "This process no longer writes it. Follow the session where it runs now: troupe cluster status.",
  });
}

function changedElsewhere(sessionId: string): TroupeError {
  return new TroupeError("storage", `The stored log of session ${sessionId} is not the one this process wrote.`, {
    hint: "Open the session again. If the database was restored from a backup, later events are lost.",
  });
}
