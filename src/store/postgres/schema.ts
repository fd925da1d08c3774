/**
 * The tables, as a list of migrations. Each runs once, in order, under a lock. A migration only adds: workers of the
 * version before must keep working while workers of the next one start.
 */

import { TroupeError } from "../../protocol/errors.ts";
import type { Database } from "./database.ts";
import { budgets } from "./schema-budgets.ts";
import { sharedLimits } from "./schema-limits.ts";
import { dispatching, tenantActions, tenants } from "./schema-tenants.ts";

/** `event.line` is the exact line of `events.jsonl` without its newline. */
export const migrations: readonly string[] = [
  `
  create sequence troupe.change;
  create table troupe.worker(
    id text primary key, host text not null, pid integer not null, pool text, version text,
    started_at timestamptz not null default clock_timestamp(), expires_at timestamptz not null,
    draining boolean not null default false, concurrency integer not null default 0);
  create table troupe.session(
    id text primary key, tenant text not null default 'default',
    epoch bigint not null, holder text, last_seq bigint not null default 0,
    change bigint not null default nextval('troupe.change'), changed_at timestamptz not null default clock_timestamp(),
    summary text);
  create index session_change on troupe.session(change desc);
  create table troupe.event(
    session_id text not null references troupe.session on delete cascade, seq bigint not null, epoch bigint not null,
    line text not null, primary key(session_id, seq));
  create table troupe.file(
    session_id text not null references troupe.session on delete cascade, path text not null, asset text,
    data bytea not null, primary key(session_id, path));
  create table troupe.snapshot(
    session_id text primary key references troupe.session on delete cascade, seq bigint not null, crc bigint not null,
    rules integer not null, body text not null);
  create table troupe.work(
    id text primary key, session_id text not null, tenant text not null default 'default', pool text not null,
    request jsonb not null, on_loss text not null, created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz, ended_at timestamptz, starts integer not null default 0, worker text, outcome jsonb);
  create index work_session on troupe.work(session_id, created_at);
  `,
  // Watchers of sessions, requests to people with the first response to each, and sessions that programs created.
  `
  create index event_rewound on troupe.event(session_id) where line like '%"type":"troupe.rewound"%';
  create table troupe.watch(session_id text primary key, until timestamptz not null);
  create table troupe.request(
    session_id text not null references troupe.session on delete cascade, id text not null, work_id text not null, kind text not null, data jsonb not null,
    created_at timestamptz not null default clock_timestamp(), ended_at timestamptz, primary key(session_id, id));
  create table troupe.answer(
    session_id text not null references troupe.session on delete cascade, request_id text not null, kind text not null, answer jsonb not null,
    created_at timestamptz not null default clock_timestamp(), primary key(session_id, request_id));
  create table troupe.remote_session(
    id text primary key, tenant text not null default 'default', options jsonb not null,
    created_at timestamptz not null default clock_timestamp(), changed_at timestamptz not null default clock_timestamp());
  alter table troupe.work add column waiting_at timestamptz, add column abort_at timestamptz;
  `,
  sharedLimits + tenants,
  budgets,
  // Files of a session that travel with it.
  `
  create table troupe.carried_file(
    session_id text not null references troupe.session on delete cascade, path text not null, hash text not null,
    data bytea not null, primary key(session_id, path));
  alter table troupe.carried_file enable row level security;
  `,
  // Workers that an operator drains, and how often a session was taken over from a lost worker.
  `
  alter table troupe.worker add column drain_asked boolean not null default false;
  alter table troupe.session add column takeovers integer not null default 0, add column taken_over_at timestamptz;
  `,
  // Between which workers the last take-over was.
  `
  alter table troupe.session add column taken_from text, add column taken_by text;
  `,
  // For metrics and overviews: ended work and sessions that were never taken over are many.
  `
  create index work_open on troupe.work(tenant) where outcome is null or set_aside is not null;
  create index session_taken_over on troupe.session(tenant) where takeovers > 0;
  `,
  dispatching,
  // Work of agents that run as sessions of their own.
  `
  alter table troupe.work add column parent text;
  create index work_parent on troupe.work(parent) where parent is not null;
  `,
  tenantActions,
];

/** An arbitrary number that identifies the lock for migrations in this database. */
const LOCK = 7_405_118;

/** Creates or updates the tables. Does nothing if they are up to date. */
export async function migrate(database: Database, list = migrations): Promise<void> {
  await database.transaction(async (queries) => {
    await queries.query("select pg_advisory_xact_lock($1)", [LOCK]);
    await queries.query("create schema if not exists troupe");
    await queries.query("create table if not exists troupe.migration(version integer primary key)");
    const { rows } = await queries.query<{ version: number }>(
      "select coalesce(max(version), 0)::int as version from troupe.migration",
    );
    const current = rows[0]?.version ?? 0;
    for (const [index, sql] of list.entries()) {
      if (index < current) continue;
      await queries.query(sql);
      await queries.query("insert into troupe.migration(version) values($1)", [index + 1]);
    }
  });
}

/** Creates the tables if there are none. Leaves older ones to workers, which update them. */
export async function createTables(database: Database): Promise<void> {
  if ((await versionOf(database)) > 0) return;
  await migrate(database).catch((error: unknown) => {
    throw isNoRight(error)
      ? noTables("this role may not create them. Start a worker as the owner of the database")
      : error;
  });
}

/** Throws if the tables are missing or older than this program needs. */
export async function checkSchema(database: Database): Promise<void> {
  const version = await versionOf(database);
  if (version >= migrations.length) return;
  if (version === 0) throw noTables("workers create them. Start one");
  throw new TroupeError("usage", "The tables of troupe in this database are of an older version.", {
    hint: "Start a worker of this version (troupe worker --database <url>): it updates them.",
  });
}

const noTables = (what: string): TroupeError =>
  new TroupeError("usage", "The database has no tables of troupe.", {
    hint: `${what.charAt(0).toUpperCase()}${what.slice(1)}: troupe worker --database <url>.`,
  });

/** Returns 0 if there are no tables. */
async function versionOf(database: Database): Promise<number> {
  try {
    const { rows } = await database.query<{ version: number }>(
      "select coalesce(max(version), 0)::int as version from troupe.migration",
    );
    return rows[0]?.version ?? 0;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");
const isMissing = (error: unknown): boolean => ["42P01", "3F000"].includes(codeOf(error));
const isNoRight = (error: unknown): boolean => codeOf(error) === "42501";
