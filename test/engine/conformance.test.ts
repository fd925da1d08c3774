/** Every engine keeps the same contract. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dbosEngine } from "../../src/engine/dbos-engine.ts";
import { ClaimLost, type Engine, type EngineWorker, type Work } from "../../src/engine/engine.ts";
import { Lease } from "../../src/engine/lease.ts";
import { removeOld } from "../../src/engine/retention.ts";
import { deferred } from "../../src/lib/deferred.ts";
import type { Queries } from "../../src/lib/queries.ts";
import { type Database, driverPath, openDatabase } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { memoryEngine } from "./memory-engine.ts";

const programs = postgresPrograms();
const workOf = (id: string, sessionId = id, tenant = "default"): Work => ({ id, sessionId, pool: "default", tenant });

const CONCURRENCY = 4;
const SLOWLY = { timeout: 30_000 };

function contract(make: () => { readonly engine: Engine; readonly runs: Runs }): void {
  it("an engine runs each piece of work once, however often it is submitted", async () => {
    const { engine, runs } = make();
    for (let count = 0; count < 3; count++) await engine.submit(workOf("once"));
    await expect.poll(() => runs.of("once")).toBe(1);
    await expect.poll(async () => (await engine.list({ sessionId: "once" }))[0]?.state).toBe("done");
    await engine.submit(workOf("once"));
    expect(await engine.list({ sessionId: "once" })).toMatchObject([{ id: "once", state: "done", attempts: 1 }]);
    expect(runs.of("once")).toBe(1);
  });

  it("an engine runs one piece of work of a session at a time", async () => {
    const { engine, runs } = make();
    const gate = deferred<void>();
    runs.wait.set("a1", gate.promise);
    await engine.submit(workOf("a1", "a"));
    await expect.poll(() => runs.of("a1")).toBe(1);
    await engine.submit(workOf("a2", "a"));
    await engine.submit(workOf("b1", "b"));
    await expect.poll(() => runs.of("b1")).toBe(1);
    expect(runs.of("a2")).toBe(0);
    gate.resolve();
    await expect.poll(() => runs.of("a2")).toBe(1);
  });

  it("an engine keeps a slot free for a recent tenant, and prefers the one with the fewest sessions", async () => {
    const { engine, runs } = make();
    await engine.submit(workOf("early"));
    await expect.poll(() => runs.of("early")).toBe(1);
    await expect.poll(async () => (await engine.list({ sessionId: "early" }))[0]?.state).toBe("done");
    const gates = new Map<string, ReturnType<typeof deferred<void>>>();
    const submit = async (id: string, tenant: string): Promise<void> => {
      const gate = deferred<void>();
      gates.set(id, gate);
      runs.wait.set(id, gate.promise);
      await engine.submit(workOf(id, id, tenant));
    };
    const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
    const started = (names: readonly string[]): number => names.filter((id) => runs.of(id) > 0).length;
    const noisy = ids("noisy", 12);
    for (const id of noisy) await submit(id, "noisy");
    await expect.poll(() => started(noisy)).toBe(CONCURRENCY - 1);
    await submit("late", "default");
    await expect.poll(() => runs.of("late")).toBe(1);
    expect(started(noisy)).toBe(CONCURRENCY - 1);
    const quiet = [...ids("b", 2), ...ids("c", 2)];
    for (const id of quiet) await submit(id, id.slice(0, 1));
    for (const id of noisy.slice(0, CONCURRENCY - 1)) gates.get(id)?.resolve();
    // Three slots, three tenants: each quiet one gets at least one of them, the noisy one at most one.
    const served = () => ({ b: started(ids("b", 2)) > 0, c: started(ids("c", 2)) > 0 });
    await expect.poll(served).toEqual({ b: true, c: true });
    expect(started(noisy)).toBeLessThanOrEqual(CONCURRENCY);
    for (const gate of gates.values()) gate.resolve();
    await expect.poll(() => started([...noisy, ...quiet, "late"]), { timeout: 60_000 }).toBe(17);
  });

  it("an engine runs work again when it is retried, and drops work that is cancelled before it runs", async () => {
    const { engine, runs } = make();
    await engine.submit(workOf("again"));
    await expect.poll(async () => (await engine.list({ sessionId: "again" }))[0]?.state).toBe("done");
    await engine.retry(workOf("again"));
    await expect.poll(() => runs.of("again")).toBe(2);
    await expect
      .poll(async () => (await engine.list({ sessionId: "again" })).map(({ state }) => state))
      .toEqual(["done"]);
    const gate = deferred<void>();
    runs.wait.set("x1", gate.promise);
    await engine.submit(workOf("x1", "x"));
    await expect.poll(() => runs.of("x1")).toBe(1);
    await engine.submit(workOf("x2", "x"));
    expect((await engine.list({ sessionId: "x", states: ["queued"] })).map(({ id }) => id)).toEqual(["x2"]);
    await engine.cancel("x2");
    gate.resolve();
    await expect.poll(async () => (await engine.list({ sessionId: "x", states: ["done"] })).length).toBe(1);
    expect(runs.of("x2")).toBe(0);
  });

  it("an engine repeats work that throws", async () => {
    const { engine, runs } = make();
    runs.failures.set("flaky", 2);
    await engine.submit(workOf("flaky"));
    await expect.poll(() => runs.of("flaky")).toBe(3);
    await expect.poll(async () => (await engine.list({ sessionId: "flaky" }))[0]?.state).toBe("done");
  });
}

class Runs {
  readonly counts = new Map<string, number>();
  readonly wait = new Map<string, Promise<void>>();
  readonly failures = new Map<string, number>();
  /** Thrown once. */
  readonly errors = new Map<string, Error>();
  of = (id: string): number => this.counts.get(id) ?? 0;
  readonly activation = async ({ id }: Work): Promise<void> => {
    this.counts.set(id, this.of(id) + 1);
    await this.wait.get(id);
    const error = this.errors.get(id);
    this.errors.delete(id);
    if (error) throw error;
    const left = this.failures.get(id) ?? 0;
    this.failures.set(id, left - 1);
    if (left > 0) throw new Error("not yet");
  };
}

describe("the engine in memory", () => {
  contract(() => {
    const [engine, runs] = [memoryEngine({ concurrency: CONCURRENCY }), new Runs()];
    void engine.serve(runs.activation);
    return { engine, runs };
  });
});

if (programs === undefined) it.skip("the engine on DBOS keeps the contract (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("the engine on DBOS", () => {
  let server: PostgresServer;
  let database: Database;
  let engine: Engine;
  let serving: EngineWorker;
  let lease: Lease;
  const runs = new Runs();

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    database = await openDatabase({ url: server.url, connections: 3 });
    await migrate(database);
    const worker = { id: "w1", host: "h", pid: process.pid, pool: "default", version: "1", concurrency: 4 };
    lease = new Lease({ queries: database, url: server.url, driver: driverPath(), worker, leaseMs: 3_000 });
    await lease.start();
    engine = await dbosEngine({
      url: server.url,
      queries: database,
      workerId: "w1",
      leaseMs: 1_000,
      concurrency: CONCURRENCY,
    });
    serving = await engine.serve(runs.activation);
  });
  afterAll(async () => {
    await serving?.drain(10_000);
    await engine?.close();
    await lease?.stop();
    await database?.close();
    server?.remove();
  });

  contract(() => ({ engine, runs }));

  /** Submits work and stores a claim on it that the worker never heard of. */
  async function strand(id: string): Promise<void> {
    await serving.pause();
    await engine.submit(workOf(id));
    await database.query(
      `update dbos.workflow_status set status = 'PENDING', executor_id = 'w1', owner_xid = 'unheard',
         started_at_epoch_ms = created_at where workflow_uuid = $1`,
      [id],
    );
    await serving.resume();
  }

  it("the engine on DBOS runs work again that wrongly reports a lost claim", async () => {
    runs.errors.set("sure", new ClaimLost(workOf("sure")));
    await engine.submit(workOf("sure"));
    await expect.poll(async () => (await engine.list({ sessionId: "sure" }))[0]?.state).toMatch("done");
    expect(runs.of("sure")).toBe(2);
  });

  it("the engine on DBOS runs work whose claim was stored, although the answer of the server was lost", async () => {
    await strand("stranded");
    await expect.poll(() => runs.of("stranded")).toBe(1);
    await expect.poll(async () => (await engine.list({ sessionId: "stranded" }))[0]?.state).toBe("done");
  });

  it("the engine on DBOS runs work once that was taken together with work that ended sooner", async () => {
    await serving.pause();
    const gate = deferred<void>();
    runs.wait.set("long", gate.promise);
    await engine.submit(workOf("short"));
    await engine.submit(workOf("long"));
    await serving.resume();
    await expect.poll(async () => (await engine.list({ sessionId: "short" }))[0]?.state, SLOWLY).toBe("done");
    expect(runs.of("long")).toBe(1);
    // Returned to the queue as soon as the worker looks for claims that it does not run.
    await strand("alarm");
    await expect.poll(() => runs.of("alarm"), SLOWLY).toBe(1);
    const [long] = await engine.list({ sessionId: "long" });
    expect([long?.state, long?.attempts]).toEqual(["running", 1]);
    gate.resolve();
    await expect.poll(async () => (await engine.list({ sessionId: "long" }))[0]?.state, SLOWLY).toBe("done");
    expect(runs.of("long")).toBe(1);
  });

  it("the engine on DBOS wakes the workers if a submitter may not search for a free slot itself", async () => {
    const woken: string[] = [];
    const queries: Queries = {
      query: async (text, values) => {
        if (text.includes("troupe.dispatch")) throw new Error("permission denied");
        return database.query(text, values);
      },
    };
    const wakes = { send: async (pool: string) => void woken.push(pool), subscribe: () => () => undefined };
    const tenant = await dbosEngine({ url: server.url, queries, wakes });
    await tenant.submit(workOf("woken"));
    expect(woken).toEqual(["default"]);
    await expect.poll(() => runs.of("woken")).toBe(1);
  });

  it("the engine on DBOS deletes old rows of work that has ended, and keeps open work", async () => {
    const DAY_MS = 86_400_000;
    const rows = async (): Promise<Record<string, readonly string[]>> => {
      const found: Record<string, readonly string[]> = {};
      for (const [table, column] of [
        ["work", "id"],
        ["request", "id"],
        ["session", "id"],
        ["worker", "id"],
      ]) {
        const all = await database.query<{ id: string }>(`select ${column} as id from troupe.${table} order by 1`);
        found[table ?? ""] = all.rows.map(({ id }) => id);
      }
      const { rows: workflows } = await database.query<{ id: string }>(
        "select workflow_uuid as id from dbos.workflow_status where workflow_uuid like 'keep-%' order by 1",
      );
      return { ...found, workflows: workflows.map(({ id }) => id) };
    };
    for (const id of ["keep-old", "keep-new"]) {
      await engine.submit(workOf(id));
      await expect.poll(async () => (await engine.list({ sessionId: id }))[0]?.state).toBe("done");
    }
    await database.query(`
      update dbos.workflow_status set updated_at = 1 where workflow_uuid = 'keep-old';
      insert into troupe.session(id, epoch, changed_at) values('old', 1, '2020-01-01'), ('busy', 1, '2020-01-01'), ('new', 1, now());
      insert into troupe.work(id, session_id, pool, request, on_loss, created_at, ended_at, outcome) values
        ('old', 'old', 'p', '{}', 'stop', '2020-01-01', '2020-01-02', '{}'), ('new', 'old', 'p', '{}', 'stop', now(), now(), '{}'),
        ('open', 'busy', 'p', '{}', 'stop', '2020-01-01', null, null);
      insert into troupe.request(session_id, id, work_id, kind, data, ended_at) values
        ('busy', 'ended', 'x', 'user_input', '{}', '2020-01-01'), ('busy', 'open', 'open', 'user_input', '{}', null);
      insert into troupe.worker(id, host, pid, expires_at) values('gone', 'h', 1, '2020-01-01')`);
    await removeOld(database, { workMs: DAY_MS }, 0);
    const kept = { work: ["new", "open"], request: ["open"], worker: ["w1"], workflows: ["keep-new"] };
    expect(await rows()).toEqual({ ...kept, session: ["busy", "new", "old"] });
    await removeOld(database, { workMs: DAY_MS, sessionsMs: DAY_MS }, 60_000);
    expect(await rows()).toEqual({ ...kept, session: ["busy", "new"] });
    // Another worker does not begin again at once.
    expect(await removeOld(database, { workMs: 0, sessionsMs: 0 })).toBe(0);
  });
});
