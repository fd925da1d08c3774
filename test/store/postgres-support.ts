import { onTestFinished } from "vitest";
import type { Queries } from "../../src/lib/queries.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { type PostgresStoreOptions, postgresStore } from "../../src/store/postgres/postgres.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import type { Store } from "../../src/store/store.ts";
import { hastyDisk, temporaryFolder } from "./support.ts";

/** Returns a store in a database of its own, which the first query creates. */
export function newDatabaseStore(url: string, more: Partial<PostgresStoreOptions> = {}): Store {
  return postgresStore({
    database: newDatabase(url),
    folder: temporaryFolder(),
    disk: hastyDisk,
    worker: { id: "w1", host: "localhost", pid: process.pid },
    ...more,
  });
}

/** Creates an empty database with the tables at the first query. Closes it with the test. */
function newDatabase(url: string): Database {
  let opening: Promise<Database> | undefined;
  const open = (): Promise<Database> => {
    opening ??= create(url);
    return opening;
  };
  onTestFinished(async () => {
    if (opening) await (await opening).close();
  });
  return {
    query: async (...args: Parameters<Queries["query"]>) => (await open()).query(...args),
    transaction: async (work) => (await open()).transaction(work),
    close: async () => (await open()).close(),
  } as Database;
}

async function create(url: string): Promise<Database> {
  const name = `t_${crypto.randomUUID().replaceAll("-", "")}`;
  const admin = await openDatabase({ url, connections: 1 });
  await admin.query(`create database ${name}`);
  await admin.close();
  const database = await openDatabase({ url: url.replace(/[^/]*$/, name), connections: 4 });
  await migrate(database);
  await database.query(
    "insert into troupe.worker(id, host, pid, expires_at) values('w1', 'localhost', $1, now() + interval '1 day')",
    [process.pid],
  );
  return database;
}
