/** The connection to Postgres: a pool of connections, and transactions. The only importer of `pg`. */

import { createRequire } from "node:module";
import type { Client, Pool, PoolClient } from "pg";
import type { Queries, Rows } from "../../lib/queries.ts";
import { CLIENT_SILENCE_MS, withServerTimeouts } from "../../lib/server-timeouts.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { Notifications } from "./notifications.ts";

export interface Database extends Queries {
  /** Runs `work` in one transaction on one connection. Rolls back if it throws. */
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /** Connects at the first subscription. */
  readonly notifications: Notifications;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** Number of connections (default: 8). */
  readonly connections?: number;
  /** Shown by `pg_stat_activity`. */
  readonly name?: string;
}

/** Bounds every wait for the server. */
const CONNECT_MS = 10_000;
const STATEMENT_MS = 60_000;

export async function openDatabase({ url, connections = 8, name = "troupe" }: DatabaseOptions): Promise<Database> {
  const { Pool: PoolOf, Client: ClientOf } = await loadPg();
  const connection = {
    connectionString: withServerTimeouts(url),
    application_name: name,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: CLIENT_SILENCE_MS,
  };
  const pool = new PoolOf({ ...connection, max: connections, query_timeout: STATEMENT_MS });
  // A connection that breaks while it is idle is replaced by the next query. Without a listener it ends the process.
  pool.on("error", ignore);
  const notifications = new Notifications(async () => new ClientOf(connection));
  return {
    query: (text, values) => (isRead(text) ? patiently(() => run(pool, text, values)) : run(pool, text, values)),
    transaction: (work) => transaction(pool, work),
    notifications,
    async close() {
      await notifications.close();
      await pool.end();
    },
  };
}

/** The path of `pg`, for a thread with a connection of its own. */
export const driverPath = (): string => createRequire(import.meta.url).resolve("pg");

async function loadPg(): Promise<{ readonly Pool: typeof Pool; readonly Client: typeof Client }> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw new TroupeError("usage", "The package pg is not installed, so no database can be used.", {
      hint: "Install it where troupe is installed: npm install pg@8",
      cause: error,
    });
  }
}

async function run<Row extends object>(
  client: Pool | PoolClient,
  text: string,
  values: readonly unknown[] = [],
): Promise<Rows<Row>> {
  const { rows, rowCount } = await client.query<Row>(text, [...values]);
  return { rows, count: rowCount ?? 0 };
}

const isRead = (text: string): boolean => /^\s*select\b/i.test(text) && !/\bfor (?:update|share)\b/i.test(text);

const READ_PAUSES_MS = [50, 250, 1000];

/** Repeats a read whose connection broke: after a restart of the server, the pool has connections that are gone. */
async function patiently<T>(read: () => Promise<T>): Promise<T> {
  for (const pauseMs of READ_PAUSES_MS) {
    try {
      return await read();
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
  return read();
}

/** Errors of the server have a code of five characters. Only those of a shutdown or a lost connection pass. */
function isConnectionLoss(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return !/^[0-9A-Z]{5}$/.test(code) || /^(?:08|57P)/.test(code);
}

async function transaction<T>(pool: Pool, work: (queries: Queries) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on("error", onError);
  try {
    await client.query("begin");
    const result = await work({ query: (text, values) => run(client, text, values) });
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(onError);
    throw error;
  } finally {
    client.off("error", onError);
    client.release(broken);
  }
}

const ignore = (): void => undefined;
