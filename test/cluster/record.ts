/** Collects what the checker needs: rows, the engine's states, a history of leases and takings, and the ledger. */

import { existsSync, readFileSync } from "node:fs";
import type { Queries } from "../../src/lib/queries.ts";
import type { ClusterRecord, Effect, LineRow, Renewal, Take, WorkRecord } from "./checker.ts";

const LINE = "e.session_id as session, e.seq::int as seq, e.epoch::int as epoch, e.line";

export async function linesIn(queries: Queries): Promise<readonly LineRow[]> {
  const { rows } = await queries.query<LineRow>(`select ${LINE} from troupe.event e order by e.session_id, e.seq`);
  return rows;
}

/** Triggers that write down each renewal of a lease and each taking of a session. The rows keep only the last one. */
const AUDIT = `
  create schema if not exists audit;
  create table if not exists audit.renewal(worker text, at timestamptz, until timestamptz);
  create table if not exists audit.take(session text, epoch bigint, holder text, at timestamptz);
  create or replace function audit.note_renewal() returns trigger language plpgsql as $$
  begin insert into audit.renewal values(new.id, clock_timestamp(), new.expires_at); return new; end $$;
  create or replace function audit.note_take() returns trigger language plpgsql as $$
  begin insert into audit.take values(new.id, new.epoch, new.holder, clock_timestamp()); return new; end $$;
  create or replace trigger note_renewal after insert or update on troupe.worker
    for each row execute function audit.note_renewal();
  create or replace trigger note_take after insert on troupe.session
    for each row execute function audit.note_take();
  create or replace trigger note_retake after update of epoch on troupe.session
    for each row when (new.epoch is distinct from old.epoch) execute function audit.note_take();`;

export const installAudit = async (queries: Queries): Promise<void> => void (await queries.query(AUDIT));

const MS = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;

async function takesIn(queries: Queries): Promise<readonly Take[]> {
  const { rows } = await queries.query<Take>(
    `select session, epoch::int as epoch, holder, ${MS("at")} as "atMs" from audit.take order by at`,
  );
  return rows;
}

async function renewalsIn(queries: Queries): Promise<readonly Renewal[]> {
  const { rows } = await queries.query<Renewal>(
    `select worker, ${MS("at")} as "atMs", ${MS("until")} as "untilMs" from audit.renewal order by at`,
  );
  return rows;
}

const STATES: Readonly<Record<string, string>> = {
  SUCCESS: "done",
  ERROR: "failed",
  CANCELLED: "cancelled",
  MAX_RECOVERY_ATTEMPTS_EXCEEDED: "set_aside",
};

/** Reads the engine's own table, without the engine. */
async function workIn(queries: Queries): Promise<readonly WorkRecord[]> {
  const { rows } = await queries.query<WorkRecord>(
    `select w.id, w.session_id as session, w.outcome,
            array(select s.status from dbos.workflow_status s where s.workflow_uuid = w.id) as engine
     from troupe.work w order by w.created_at`,
  );
  return rows.map((row) => ({ ...row, engine: row.engine.map((status) => STATES[status] ?? status) }));
}

/** Each line: the working folder, nanoseconds, the token. The folder names the worker and the session. */
export function effectsIn(ledger: string, workerIds: ReadonlyMap<string, string>): readonly Effect[] {
  if (!existsSync(ledger)) return [];
  const lines = readFileSync(ledger, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => {
    const [folder = "", ns = "0", token = ""] = line.split(" ");
    const [, name = "", session = ""] = /([^/]+)-work\/workspaces\/([^/]+)$/.exec(folder) ?? [];
    return { session, worker: workerIds.get(name) ?? name, token, atMs: Number(BigInt(ns) / 1000n) / 1000 };
  });
}

export interface Sources {
  readonly queries: Queries;
  readonly ledger: string;
  /** Ids of workers by the name of their state folder. */
  readonly workerIds: ReadonlyMap<string, string>;
}

export async function readRecord({ queries, ledger, workerIds }: Sources): Promise<ClusterRecord> {
  const { rows: sessions } = await queries.query<{ id: string; epoch: number; lastSeq: number }>(
    `select id, epoch::int as epoch, last_seq::int as "lastSeq" from troupe.session`,
  );
  return {
    lines: await linesIn(queries),
    sessions,
    work: await workIn(queries),
    effects: effectsIn(ledger, workerIds),
    takes: await takesIn(queries),
    renewals: await renewalsIn(queries),
  };
}

/** Follows all sessions by reading what is new, as a watcher does. */
export class Follower {
  readonly lines: LineRow[] = [];
  readonly #queries: Queries;
  readonly #known = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #reading: Promise<void> = Promise.resolve();

  constructor(queries: Queries) {
    this.#queries = queries;
    this.#running = this.#run();
  }

  /** Reads what is left. */
  async catchUp(): Promise<readonly LineRow[]> {
    await this.#next();
    return this.lines;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      // The server may be away.
      await this.#next().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** One reading at a time, so that no line is read twice. */
  #next(): Promise<void> {
    this.#reading = this.#reading.catch(() => undefined).then(() => this.#read());
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { rows } = await this.#queries.query<LineRow>(
      `select ${LINE} from troupe.event e
       left join unnest($1::text[], $2::bigint[]) as k(id, seq) on k.id = e.session_id
       where e.seq > coalesce(k.seq, 0) order by e.session_id, e.seq`,
      [[...this.#known.keys()], [...this.#known.values()]],
    );
    for (const row of rows) {
      this.lines.push(row);
      this.#known.set(row.session, row.seq);
    }
  }
}
