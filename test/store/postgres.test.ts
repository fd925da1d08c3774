/** Promises of the store in Postgres beyond the contract of every store: one writer, and nothing lost. */

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { askToDrain } from "../../src/runtime/cluster/draining.ts";
import { addWork, noteAbort } from "../../src/runtime/cluster/work.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { watchEvents } from "../../src/store/postgres/follow.ts";
import { CHANNEL, topics } from "../../src/store/postgres/notifications.ts";
import { type PostgresStoreOptions, postgresStore } from "../../src/store/postgres/postgres.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import type { SessionLog, Store } from "../../src/store/store.ts";
import { violations } from "../cluster/invariants.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { hastyDisk, message, messages, temporaryFolder } from "./support.ts";

const programs = postgresPrograms();
const barrier = { barrier: true };
const plain = { barrier: false };

if (programs === undefined) it.skip("Postgres keeps one writer per session (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("sessions in Postgres", () => {
  let server: PostgresServer;
  let database: Database;

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    database = await openDatabase({ url: server.url });
    await migrate(database);
  });
  afterAll(async () => {
    await database?.close();
    server?.remove();
  });

  async function storeOf(id: string, more: Partial<PostgresStoreOptions> = {}): Promise<Store> {
    await lease(id, "1 day");
    const worker = { id, host: id, pid: 1 };
    return postgresStore({ database, folder: temporaryFolder(), disk: hastyDisk, worker, ...more });
  }
  const lease = (id: string, time: string) =>
    database.query(
      `insert into troupe.worker(id, host, pid, expires_at) values($1, $1, 1, now() + $2::interval)
       on conflict (id) do update set expires_at = excluded.expires_at`,
      [id, time],
    );
  /** Returns the payloads of the notifications that `work` sends. */
  async function payloadsOf(work: () => Promise<void>): Promise<readonly string[]> {
    const { Client } = await import("pg");
    const client = new Client({ connectionString: server.url });
    const payloads: string[] = [];
    client.on("notification", ({ payload = "" }) => void payloads.push(payload));
    await client.connect();
    await client.query(`listen ${CHANNEL}`);
    await work();
    await client.query("select 1");
    await client.end();
    return payloads;
  }
  const newId = (): string => `s-${crypto.randomUUID()}`;

  it("a session in Postgres cannot be opened for writing while another worker's lease is valid", async () => {
    const [id, first, second] = [newId(), await storeOf("a"), await storeOf("b")];
    const log = await first.create(id);
    await log.append(message(1), barrier);
    expect((await second.open(id)).heldBy).toEqual({ pid: 1, host: "a" });
    await lease("a", "-1 second");
    const other = await second.open(id);
    expect(other.heldBy).toBeUndefined();
    await other.append(message(2), barrier);
    await expect(log.append(message(3), barrier)).rejects.toThrow("Another process has taken over");
    await expect(log.repairAfterFailedWrite()).rejects.toThrow("Another process has taken over");
    await expect(log.writeSummary({} as never)).rejects.toMatchObject({ kind: "storage" });
    await other.close();
    expect((await second.read(id)).events).toEqual(messages(2));
    expect(await violations(database)).toEqual([]);
  });

  it("notifications name no session, job or worker, because every role may listen", async () => {
    const [id, pool] = [newId(), newId()];
    const log = await (await storeOf("n1")).create(id);
    await log.append(message(1), barrier);
    await watchEvents(database, [id]);
    await addWork(database, {
      ...{ id: `work-${id}`, sessionId: id, tenant: "t", pool, onLoss: "continue" },
      request: { prompt: "x", flags: [] },
    });
    const payloads = await payloadsOf(async () => {
      await log.append(message(2), barrier);
      await noteAbort(database, `work-${id}`);
      await askToDrain(database, { name: "n1", isAsked: true });
    });
    const expected = [topics.events(id), topics.work(`work-${id}`), topics.session(id), topics.worker("n1")];
    expect([...payloads].sort()).toEqual([...expected].sort());
    expect(payloads.filter((payload) => payload.includes(id) || payload.includes("n1"))).toEqual([]);
    await log.close();
  });

  const races = process.env.TROUPE_SLOW === undefined ? 100 : 1_000;
  it(`a session in Postgres has one writer after each of ${races} races for it`, async () => {
    const stores = [await storeOf("r1"), await storeOf("r2"), await storeOf("r3")];
    for (let race = 0; race < races; race++) {
      const id = newId();
      const log = await (stores[0] as Store).create(id);
      await log.append(message(1), barrier);
      await log.close();
      const opened = await Promise.all(stores.map((store) => store.open(id)));
      const wrote = await Promise.allSettled(opened.map((one) => one.append(message(2), barrier)));
      expect(wrote.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      await Promise.all(opened.map((one) => one.close()));
      expect((await (stores[0] as Store).read(id)).events).toEqual(messages(2));
    }
  });

  it("a session in Postgres is taken from any holder by a claim, but only while the claim is valid", async () => {
    const [id, first] = [newId(), await storeOf("c")];
    const log = await first.create(id);
    await log.append(message(1), barrier);
    const valid = await storeOf("d", { claim: () => ({ condition: "$1::int = 1", values: [1] }) });
    const lost = await storeOf("e", { claim: () => ({ condition: "$1::int = 1", values: [2] }) });
    await expect(lost.open(id)).rejects.toMatchObject({ kind: "interrupted" });
    const taken = await valid.open(id);
    await taken.append(message(2), barrier);
    await expect(log.append(message(3), barrier)).rejects.toMatchObject({ kind: "storage" });
    await taken.close();
  });

  it("a session in Postgres brings its files to the next machine, and not those of a process that lost it", async () => {
    const [id, first, second] = [newId(), await storeOf("m1"), await storeOf("m2")];
    const write = (log: SessionLog, path: string, text: string): void => {
      mkdirSync(join(log.directory, dirname(path)), { recursive: true });
      writeFileSync(join(log.directory, path), text);
    };
    const read = (log: SessionLog) =>
      Object.fromEntries(
        ["session.db", "files/plan.txt", "checkpoints/packs/1", "pipes/x"].flatMap((path) => {
          const file = join(log.directory, path);
          return existsSync(file) ? [[path, readFileSync(file, "utf8")]] : [];
        }),
      );
    const log = await first.create(id);
    await log.append(message(1), barrier);
    for (const path of ["session.db", "files/plan.txt", "checkpoints/packs/1", "pipes/x"]) write(log, path, "one");
    await log.close();
    const other = await second.open(id);
    expect(read(other)).toEqual({ "session.db": "one", "files/plan.txt": "one", "checkpoints/packs/1": "one" });
    write(other, "session.db", "two");
    rmSync(join(other.directory, "files/plan.txt"));
    await other.close();
    const back = await first.open(id);
    expect(read(back)).toEqual({ "session.db": "two", "checkpoints/packs/1": "one", "pipes/x": "one" });
    await lease("m1", "-1 second");
    const taken = await second.open(id);
    write(back, "session.db", "late");
    await back.close();
    await taken.close();
    expect(read(await (await storeOf("m3")).open(id))).toEqual({ "session.db": "two", "checkpoints/packs/1": "one" });
  });

  it("a session in Postgres that was lost and regained refuses exactly the lines of the earlier holder", async () => {
    const [id, other] = [newId(), newId()];
    const claim = { condition: "$1", values: [true] };
    const store = await storeOf("again", { claim: (session) => (session === id ? claim : undefined) });
    const [earlier, neighbour] = [await store.create(id), await store.create(other)];
    await earlier.append(message(1), barrier);
    await neighbour.append(message(1), barrier);
    const later = await store.open(id);
    // The refused one leaves no gap: the next event names the one before.
    const next = { ...message(3), parentId: message(1).id };
    const ends = await Promise.allSettled([
      ...[earlier.append(message(2), barrier), later.append(next, barrier), neighbour.append(message(2), barrier)],
    ]);
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect((await store.read(id)).events).toEqual([message(1), next]);
    for (const log of [earlier, later, neighbour]) await log.close();
  });

  it.runIf(process.env.TROUPE_SLOW)(
    "a session in Postgres reports files beyond the number that is copied",
    { timeout: 120_000 },
    async () => {
      const reports: string[] = [];
      const [id, store] = [newId(), await storeOf("m4", { report: (line) => reports.push(line) })];
      const log = await store.create(id);
      await log.append(message(1), barrier);
      mkdirSync(join(log.directory, "files"), { recursive: true });
      for (let index = 0; index <= 2_000; index++) writeFileSync(join(log.directory, `files/${index}`), "");
      await log.close();
      const { rows } = await database.query("select 1 from troupe.carried_file where session_id = $1", [id]);
      expect([rows.length, reports]).toEqual([2_000, [`${id}: only 2000 of its files travel with the session`]]);
    },
  );

  it("a session in Postgres loses no acknowledged event when the server crashes, synced or not", async () => {
    const store = await storeOf("f");
    const logs = await Promise.all(Array.from({ length: 5 }, () => store.create(newId())));
    for (let round = 0; round < 3; round++) {
      const events = messages(20, round * 20 + 1);
      const writes = logs.flatMap((log) =>
        events.map((event, index) => log.append(event, index % 7 === 3 ? barrier : plain)),
      );
      await writes[0];
      server.crash();
      await Promise.all(writes);
    }
    for (const log of logs) {
      await log.flush();
      expect((await store.read(log.sessionId)).events).toEqual(messages(60));
      await log.close();
    }
    expect(await violations(database)).toEqual([]);
  });

  it("a session in Postgres loses no acknowledged event when another one writes first after a crash", async () => {
    const store = await storeOf("k");
    const [quiet, busy] = await Promise.all([store.create(newId()), store.create(newId())]);
    await quiet.append(message(1), barrier);
    await busy.append(message(1), barrier);
    await quiet.append(message(2), plain);
    server.crash();
    await busy.append(message(2), barrier);
    await quiet.append(message(3), barrier);
    for (const [log, count] of [
      [quiet, 3],
      [busy, 2],
    ] as const) {
      expect((await store.read(log.sessionId)).events).toEqual(messages(count));
      await log.close();
    }
  });

  it("a session in Postgres is created when the server is available again", async () => {
    const store = await storeOf("j");
    const log = await store.create(newId());
    server.stop("immediate");
    const written = log.append(message(1), barrier);
    server.start();
    await written;
    expect((await store.read(log.sessionId)).events).toEqual(messages(1));
    await log.close();
  });

  it("a session in Postgres can be appended to again after an outage that lasted too long", async () => {
    const store = await storeOf("g", { patienceMs: 200 });
    const log = await store.create(newId());
    await log.append(message(1), barrier);
    server.stop("immediate");
    try {
      await expect(log.append(message(2), barrier)).rejects.toMatchObject({ kind: "storage" });
      await expect(log.append(message(2), barrier)).rejects.toMatchObject({ kind: "storage" });
    } finally {
      server.start();
    }
    await expect
      .poll(() =>
        log.repairAfterFailedWrite().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await log.append(message(2), barrier);
    await log.close();
    expect((await store.read(log.sessionId)).events).toEqual(messages(2));
  });

  it("a session in Postgres is forked with its files, and shares no later change", async () => {
    const store = await storeOf("h");
    const [id, forkId] = [newId(), newId()];
    const log = await store.create(id);
    for (const event of messages(3)) await log.append(event, barrier);
    const { assetId } = await log.writeAsset(Uint8Array.from([1, 2]), "png");
    const summary = { sessionId: forkId, cwd: "/", createdAt: "x", updatedAt: "x", turns: 0 };
    const events = { count: 2, changedTypes: new Set<string>(), change: () => undefined, added: [] };
    await store.fork(id, { sessionId: forkId, events, summary, copies: [] });
    await log.append(message(4), barrier);
    const fork = await store.open(forkId);
    expect(fork.events).toEqual(messages(2));
    expect(Array.from((await fork.readAsset(assetId)) ?? [])).toEqual([1, 2]);
    await expect(store.fork(id, { sessionId: forkId, events, summary, copies: [] })).rejects.toMatchObject({
      kind: "usage",
    });
    await fork.close();
    await log.close();
  });

  it("a session in Postgres opens from a snapshot with the same events as from all lines", async () => {
    const condense = (events: readonly unknown[]) => events.slice(-2) as never;
    const snapshots = { version: 1, condense, condenseRemoved: condense, isMilestone: () => true, minLogBytes: 1 };
    const store = await storeOf("i", { snapshots });
    const id = newId();
    const log = await store.create(id);
    for (const event of messages(10)) await log.append(event, barrier);
    expect(await log.snapshot({ events: messages(2, 9), count: 10 })).toBe(true);
    await log.append(message(11), barrier);
    await log.close();
    const opened = await store.open(id);
    expect({ events: opened.events, count: opened.count }).toEqual({ events: messages(3, 9), count: 11 });
    expect(await opened.page(3, 5)).toEqual(messages(2, 4));
    await opened.append(message(12), barrier);
    await opened.close();
    expect(await violations(database)).toEqual([]);
  });
});
