/**
 * A `Store` in Postgres, for sessions that any of several machines may run. Each row of `troupe.event` is the exact line
 * of `events.jsonl`, so sessions can be exported and imported without conversion.
 *
 * Taking a session raises its `epoch`, and every append compares it: a process that lost the session cannot write. A
 * session is free when it has no holder, when its holder's lease has expired, or when the caller has a claim on it.
 */

import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { type Condition, conditionAfter, type Queries } from "../../lib/queries.ts";
import { inUse, TroupeError } from "../../protocol/errors.ts";
import { forkedEvents } from "../fork-log.ts";
import { encodeLine, noRecord } from "../log/line.ts";
import { visibleEvents } from "../log/rewound.ts";
import type { SnapshotRules } from "../log/snapshot.ts";
import { alreadyThere, checkSessionId, noSuchSession } from "../session-id.ts";
import { failTo } from "../storage-error.ts";
import type { SessionLog, SessionSummary, Store } from "../store.ts";
import { encodeSummary } from "../summary.ts";
import { CarriedFiles } from "./carried-files.ts";
import type { Database } from "./database.ts";
import { rowLines } from "./follow.ts";
import { postgresLog } from "./postgres-log.ts";
import { storeReader } from "./reading.ts";
import { loadRows, noRows, readRows } from "./rows.ts";
import { SessionFiles } from "./session-files.ts";
import { GroupWriter, LogTail } from "./writer.ts";

export interface PostgresStoreOptions {
  readonly database: Database;
  /** Parent of the session folders that hold data for this machine only. */
  readonly folder: string;
  readonly disk: Disk;
  readonly worker: Worker;
  /** Returns the tenant of a new session (default: `default`). */
  tenantOf?(sessionId: string): string | undefined;
  /** Returns the caller's right to take the session from any holder. Checked in the statement that takes it. */
  claim?(sessionId: string): TakingClaim | undefined;
  /** Opens sessions without taking them, so that the process that has them continues. */
  readonly readsOnly?: boolean;
  readonly snapshots?: SnapshotRules;
  readonly patienceMs?: number;
  /** Reports what does not travel with a session, and writes that wait for the server, one line each. */
  report?(line: string): void;
}

interface TakingClaim extends Condition {
  /** The epoch under which the session was taken with this claim, until it is opened under it. */
  taken?: string | undefined;
}

/** Identifies the process that writes. Its lease is a row of `troupe.worker`. */
export interface Worker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
}

export function postgresStore(options: PostgresStoreOptions): Store {
  const { database, disk, worker } = options;
  const { patienceMs, report } = options;
  const waiting = defined({ patienceMs, report });
  const writer = new GroupWriter({ database, ...waiting });
  const { filesOf, carriedOf, logOf } = logMaker(options, writer);
  const check = async (sessionId: string): Promise<string> => {
    if (!(await isStored(database, checkSessionId(sessionId)))) throw noSuchSession(sessionId);
    return sessionId;
  };
  const exact = rowLines(database, (sessionId) => options.tenantOf?.(sessionId) ?? "default");

  return {
    async create(sessionId) {
      if (await isStored(database, checkSessionId(sessionId))) throw alreadyThere(sessionId);
      return logOf(new LogTail(sessionId));
    },
    async open(sessionId) {
      await check(sessionId);
      const { readsOnly = false } = options;
      const epoch = readsOnly ? undefined : await take(options, sessionId).catch(failTo("open the session"));
      const loaded = await loadRows(database, sessionId, options.snapshots).catch(failTo("read the session log"));
      if (!readsOnly) await filesOf(sessionId).bring().catch(failTo("copy the session's files"));
      if (epoch !== undefined) {
        const carried = carriedOf(sessionId);
        await carried.bring(epoch).catch(failTo("copy the session's files"));
        return logOf(new LogTail(sessionId, loaded.last, epoch), loaded, carried);
      }
      const holder = (await holderOf(database, sessionId)) ?? (readsOnly ? undefined : worker);
      return readOnly(logOf(new LogTail(sessionId, loaded.last), loaded), holder);
    },
    ...storeReader(database, check),
    exact: {
      async *read(sessionId) {
        yield* exact.read(await check(sessionId));
      },
      add: (sessionId, lines) => exact.add(sessionId, lines),
    },
    async fork(sessionId, fork) {
      const { events } = await readRows(database, await check(sessionId));
      const own = forkedEvents(visibleEvents(events).events, fork.events);
      await insertFork(options, {
        sessionId,
        forkId: checkSessionId(fork.sessionId),
        events: own,
        summary: fork.summary,
      });
    },
    async remove(sessionId) {
      await check(sessionId);
      const { count } = await database.query(`delete from troupe.session s where id = $1 and ${IS_FREE}`, [sessionId]);
      if (count === 0) throw heldError(sessionId, (await holderOf(database, sessionId)) ?? worker);
      await disk.remove(join(options.folder, sessionId)).catch(failTo("delete the session"));
    },
  };
}

/** Returns functions that make the log of a session and what lies beside it. */
function logMaker(options: PostgresStoreOptions, writer: GroupWriter) {
  const { database, disk } = options;
  const filesOf = (sessionId: string): SessionFiles =>
    new SessionFiles({ database, disk, sessionId, directory: join(options.folder, checkSessionId(sessionId)) });
  const carriedOf = (sessionId: string): CarriedFiles =>
    new CarriedFiles({ ...options, sessionId, directory: join(options.folder, checkSessionId(sessionId)) });
  const logOf = (tail: LogTail, loaded = noRows, carried = carriedOf(tail.sessionId)): SessionLog => {
    tail.enter = entering(options, tail);
    const files = filesOf(tail.sessionId);
    const rules = options.snapshots?.version;
    return postgresLog({
      database,
      writer,
      tail,
      loaded,
      files,
      carried,
      rules,
      release: () => release(database, tail),
    });
  };
  return { filesOf, carriedOf, logOf };
}

const IS_FREE = `(s.holder is null or not exists (
  select 1 from troupe.worker w where w.id = s.holder and w.expires_at > clock_timestamp()))`;

async function isStored(database: Database, sessionId: string): Promise<boolean> {
  const found = await database
    .query("select 1 from troupe.session where id = $1 and last_seq > 0", [sessionId])
    .catch(failTo("look for the session"));
  return found.count > 0;
}

/** A process that closes a session lets go of it: another holder was lost. */
const COUNT_TAKEOVER = `takeovers = s.takeovers + (s.holder <> $2 is true)::int,
  taken_over_at = case when s.holder <> $2 then clock_timestamp() else s.taken_over_at end,
  taken_from = case when s.holder <> $2 then s.holder else s.taken_from end,
  taken_by = case when s.holder <> $2 then $2 else s.taken_by end`;

/** Returns the new epoch, or `undefined` if another process has the session. Throws if the claim is no longer valid. */
async function take(options: PostgresStoreOptions, sessionId: string): Promise<string | undefined> {
  const claim = options.claim?.(sessionId);
  if (claim?.taken !== undefined) {
    const epoch = claim.taken;
    claim.taken = undefined;
    return epoch;
  }
  const taken = await takeSession(options.database, sessionId, { worker: options.worker.id, ...defined({ claim }) });
  if (!taken && claim) throw lostClaim(sessionId);
  return taken?.epoch;
}

/** The session at the moment when it was taken. */
export interface TakenSession {
  readonly epoch: string;
  /** Number of its last line. No process that had it before adds another one. */
  readonly lastSeq: number;
}

/** Takes a stored session. Returns `undefined` if there is none, the claim is not valid, or, without a claim, it is not free. */
export async function takeSession(
  queries: Queries,
  sessionId: string,
  { worker, claim }: { readonly worker: string; readonly claim?: Condition },
): Promise<TakenSession | undefined> {
  const { rows } = await queries.query<TakenSession>(
    `update troupe.session s set epoch = epoch + 1, holder = $2, ${COUNT_TAKEOVER}
     where id = $1 and ${claim ? conditionAfter(claim, 2) : IS_FREE}
     returning epoch::text, last_seq::float8 as "lastSeq"`,
    [sessionId, worker, ...(claim?.values ?? [])],
  );
  return rows[0];
}

/** Returns a function that creates the row of a new session, once. */
function entering(options: PostgresStoreOptions, tail: LogTail): () => Promise<void> {
  const { database, worker } = options;
  let running: Promise<void> | undefined;
  const enter = async (): Promise<void> => {
    const claim = options.claim?.(tail.sessionId);
    const { rows } = await database.query<{ epoch: string }>(
      `insert into troupe.session as s (id, epoch, holder, tenant) select $1, 1, $2, $3
       where ${claim ? conditionAfter(claim, 3) : "true"}
       on conflict (id) do update set epoch = s.epoch + 1, holder = $2, ${COUNT_TAKEOVER}
         where s.last_seq = 0 and ${claim ? "true" : `(s.holder = $2 or ${IS_FREE})`}
       returning epoch::text`,
      [tail.sessionId, worker.id, options.tenantOf?.(tail.sessionId) ?? "default", ...(claim?.values ?? [])],
    );
    if (!rows[0]) throw claim ? lostClaim(tail.sessionId) : alreadyThere(tail.sessionId);
    tail.epoch = rows[0].epoch;
  };
  return async () => {
    if (tail.epoch !== undefined) return;
    running ??= enter().finally(() => {
      running = undefined;
    });
    await running.catch(failTo("create the session"));
  };
}

/** Lets go of a session, unless it was taken again since. */
export async function release(
  database: Queries,
  { sessionId, epoch }: { readonly sessionId: string; readonly epoch: string | undefined },
): Promise<void> {
  await database.query("update troupe.session set holder = null where id = $1 and epoch = $2", [sessionId, epoch]);
  // A session that never got a line does not exist.
  await database.query("delete from troupe.session where id = $1 and epoch = $2 and last_seq = 0", [sessionId, epoch]);
}

async function holderOf(database: Database, sessionId: string): Promise<Worker | undefined> {
  const { rows } = await database.query<Worker>(
    "select w.id, w.host, w.pid from troupe.session s join troupe.worker w on w.id = s.holder where s.id = $1",
    [sessionId],
  );
  return rows[0];
}

function readOnly(log: SessionLog, holder: Worker | undefined): SessionLog {
  const refuse = async (): Promise<never> => {
    throw holder ? heldError(log.sessionId, holder) : notTaken(log.sessionId);
  };
  const refused = {
    append: refuse,
    repairAfterFailedWrite: refuse,
    writeAsset: refuse,
    writeFile: refuse,
    writeSummary: refuse,
  };
  const heldBy = holder && { pid: holder.pid, host: holder.host };
  return { ...log, ...refused, heldBy, close: async () => undefined };
}

const notTaken = (sessionId: string): TroupeError =>
  new TroupeError("storage", `Session ${sessionId} is read-only here.`, {
    hint: "Workers change it: send it a message (troupe -p … --resume <session>).",
  });

function heldError(sessionId: string, { host, pid }: Worker): TroupeError {
  const advice = "Wait until it is idle there, or stop it: troupe cluster status shows it.";
  return inUse(sessionId, { host, pid, advice });
}

function lostClaim(sessionId: string): TroupeError {
  return new TroupeError("interrupted", `Session ${sessionId} was given to another worker.`);
}

async function insertFork(
  { database }: PostgresStoreOptions,
  fork: {
    readonly sessionId: string;
    readonly forkId: string;
    readonly events: Parameters<typeof encodeLine>[0][];
    readonly summary: SessionSummary;
  },
): Promise<void> {
  const { sessionId, forkId, events, summary } = fork;
  let last = noRecord;
  const lines = events.map((event) => {
    const { bytes, link } = encodeLine(event, last);
    last = link;
    return bytes.toString("utf8", 0, bytes.length - 1);
  });
  await database.transaction(async (queries) => {
    const { count } = await queries.query(
      `insert into troupe.session(id, tenant, epoch, last_seq, summary)
       select $2, tenant, 1, $3, $4 from troupe.session where id = $1 on conflict do nothing`,
      [sessionId, forkId, lines.length, encodeSummary(summary)],
    );
    if (count === 0) throw alreadyThere(forkId);
    await queries.query(
      `insert into troupe.event select $1, e.seq, 1, e.line
       from unnest($2::text[]) with ordinality as e(line, seq)`,
      [forkId, lines],
    );
    await queries.query(
      "insert into troupe.carried_file select $2, path, hash, data from troupe.carried_file where session_id = $1",
      [sessionId, forkId],
    );
    await queries.query("insert into troupe.file select $2, path, asset, data from troupe.file where session_id = $1", [
      sessionId,
      forkId,
    ]);
  });
}
