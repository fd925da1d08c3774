/**
 * The tables, as a list of migrations. Each runs once, in order, under a lock. A migration only adds: workers of the
 * version before must keep working while workers of the next one start.
 */

import { TroupeError } from "../../protocol/errors.ts";
import type { Database } from "./database.ts";
import { budgets } from "./schema-budgets.ts";
import { sharedLimits } from "./schema-limits.ts";
import { tenants } from "./schema-tenants.ts";

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
  // Watchers of sessions, requests to people with the first answer to each, and sessions that programs created.
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

/** Throws if the tables are missing or older than this program needs. */
export async function checkSchema(database: Database): Promise<void> {
  const found = await database
    .query<{ version: number }>("select coalesce(max(version), 0)::int as version from troupe.migration")
    .catch(() => undefined);
  const version = found?.rows[0]?.version ?? 0;
  if (version >= migrations.length) return;
  throw new TroupeError("usage", "The database has no tables of troupe, or older ones.", {
    hint: "Start a worker (troupe worker --database <url>): it creates and updates them.",
  });
}
