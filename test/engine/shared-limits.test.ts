/** Rates, concurrency and budgets that several workers share, on a real Postgres server. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BudgetSpent, SharedBudgets } from "../../src/engine/shared-budgets.ts";
import { GateShut, SharedRates } from "../../src/engine/shared-rates.ts";
import type { Queries } from "../../src/lib/queries.ts";
import { setBudget, setRate } from "../../src/runtime/cluster/limits.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";

const programs = postgresPrograms();
const LEASE_MS = 500;
const live = new AbortController().signal;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

if (programs === undefined) it.skip("workers share limits (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("limits that workers share", () => {
  let server: PostgresServer;
  let database: Database;

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    database = await openDatabase({ url: server.url, connections: 6 });
    await migrate(database);
    for (const id of ["w1", "w2", "w3", "w4", "w5", "w6"]) await beat(id, "1 day");
    // Right after a start of the server every worker counts as alive.
    await sleep(2 * LEASE_MS);
  });
  afterAll(async () => {
    await database?.close();
    server?.remove();
  });

  const beat = (id: string, time: string) =>
    database.query(
      `insert into troupe.worker(id, host, pid, expires_at) values($1, 'h', 1, clock_timestamp() + $2::interval)
       on conflict (id) do update set expires_at = excluded.expires_at`,
      [id, time],
    );
  const partOf = (workerId: string) => ({ queries: database, workerId, leaseMs: LEASE_MS });

  it("limits that workers share never grant more requests in any window than the rate allows", async () => {
    const [window, requests] = [1_500, 8];
    await database.query("insert into troupe.rate_limit(name, requests, window_ms) values('p/rate', $1, $2)", [
      requests,
      window,
    ]);
    const starts: number[] = [];
    const worker = async (id: string): Promise<void> => {
      const rates = new SharedRates(partOf(id));
      const one = async (): Promise<void> => {
        const right = await rates.enter(["p/rate", "p"], live);
        starts.push(performance.now());
        right.release();
      };
      await Promise.all(Array.from({ length: 8 }, one));
    };
    await Promise.all(["w1", "w2", "w3"].map(worker));
    const busiest = Math.max(...starts.map((from) => starts.filter((at) => at >= from && at < from + window).length));
    expect(starts).toHaveLength(24);
    expect(busiest).toBeLessThanOrEqual(requests);
  });

  it("limits that workers share never run more requests at a time than the limit, and let every worker have some", async () => {
    await setRate(database, "p", { requestsPerMinute: null, concurrency: 3 });
    let [running, most] = [0, 0];
    const order: string[] = [];
    const worker = async (id: string): Promise<void> => {
      const rates = new SharedRates(partOf(id));
      const one = async (model: string): Promise<void> => {
        const right = await rates.enter([`p/${model}`, "p"], live);
        most = Math.max(most, ++running);
        await sleep(30);
        running--;
        order.push(id);
        right.release();
      };
      await Promise.all(Array.from({ length: 8 }, (_, index) => one(index % 2 === 0 ? "even" : "odd")));
    };
    await Promise.all(["w1", "w2"].map(worker));
    expect({ most, done: order.length }).toEqual({ most: 3, done: 16 });
    expect(new Set(order.slice(0, 10))).toEqual(new Set(["w1", "w2"]));
  });

  it("limits that workers share shut the gate for all workers after a rate limit, and send one probe", async () => {
    const [one, other] = [new SharedRates(partOf("w1")), new SharedRates(partOf("w2"))];
    const right = await one.enter(["g/m"], live);
    const refusedAt = performance.now();
    right.refused(2000);
    right.release();
    await expect
      .poll(async () => (await database.query("select 1 from troupe.rate_limit where gate_until is not null")).count)
      .toBe(1);
    const reasons = new Set<string>();
    const rights: { release(): void; accepted(): void }[] = [];
    const waiting = [one, other, one, other].map((rates) =>
      rates.enter(["g/m"], live, ({ reason }) => reasons.add(reason)).then((next) => rights.push(next)),
    );
    await Promise.race(waiting);
    expect(performance.now() - refusedAt).toBeGreaterThan(1900);
    await sleep(600);
    expect({ probes: rights.length, reasons: [...reasons] }).toEqual({ probes: 1, reasons: ["gate"] });
    rights[0]?.accepted();
    await Promise.all(waiting);
    expect(rights).toHaveLength(4);
  });

  it("limits that workers share need almost no statements while nothing is limited", async () => {
    let statements = 0;
    const queries: Queries = {
      query: (text, values) => {
        statements++;
        return database.query(text, values);
      },
    };
    const [rates, budgets] = [
      new SharedRates({ ...partOf("w6"), queries }),
      new SharedBudgets({ ...partOf("w6"), queries }),
    ];
    const since = performance.now();
    for (let call = 0; call < 50; call++) {
      const right = await rates.enter(["free/m", "free"], live);
      const held = await budgets.reserve("free", { tokens: 10, costUsd: 0.01 }, live);
      held.settle({ tokens: 10, costUsd: 0.01 });
      right.accepted();
      right.release();
    }
    await budgets.flush();
    expect(statements).toBeLessThan(8 + (performance.now() - since) / 100);
    const { rows } = await database.query(
      "select spent_tokens::int as tokens from troupe.budget where tenant = 'free'",
    );
    expect(rows).toEqual([{ tokens: 500 }]);
  });

  it("limits that workers share fail a request at once when the gate stays shut for too long", async () => {
    await database.query("insert into troupe.rate_limit(name, gate_until) values('h/m', now() + interval '1 hour')");
    const rates = new SharedRates(partOf("w1"));
    await expect(rates.enter(["h/m"], live)).rejects.toBeInstanceOf(GateShut);
  });

  it("limits that workers share take back the slots and the probe of a worker whose lease has expired", async () => {
    await setRate(database, "d/m", { requestsPerMinute: null, concurrency: 1 });
    await new SharedRates(partOf("w4")).enter(["d/m"], live);
    const next = new SharedRates(partOf("w1")).enter(["d/m"], live);
    expect(await Promise.race([next.then(() => "entered"), sleep(400).then(() => "waits")])).toBe("waits");
    await beat("w4", "-1 s");
    (await next).release();
    await expect(
      Promise.race([new SharedRates(partOf("w4")).enter(["d/m"], live), sleep(400).then(() => "waits")]),
    ).resolves.toBe("waits");
    await beat("w4", "1 day");
  });

  const call = { tokens: 100, costUsd: 0.3 };

  it("limits that workers share let a tenant spend its budget and at most one call more, and name the limit", async () => {
    await setBudget(database, "acme", { costUsd: 1, tokens: null, period: "month" });
    const ends: string[] = [];
    const worker = async (id: string): Promise<void> => {
      const budgets = new SharedBudgets(partOf(id));
      const one = async (): Promise<void> => {
        const held = await budgets.reserve("acme", call, live);
        await sleep(20);
        held.settle({ tokens: 90, costUsd: 0.28 });
        ends.push("sent");
      };
      const results = await Promise.allSettled(Array.from({ length: 6 }, one));
      for (const result of results) if (result.status === "rejected") ends.push(String(result.reason.message));
      await budgets.flush();
    };
    await Promise.all(["w1", "w2", "w3"].map(worker));
    const { rows } = await database.query(
      "select spent_usd::float as usd, spent_tokens::int as tokens from troupe.budget where tenant = 'acme'",
    );
    expect(rows).toEqual([{ usd: 1.12, tokens: 360 }]);
    expect(ends.filter((end) => end === "sent")).toHaveLength(4);
    expect(new Set(ends)).toEqual(
      new Set(["sent", "The budget of tenant acme for this month is used up: $1.1200 of $1.0000."]),
    );
  });

  it("limits that workers share refuse a model without a price when the cost is limited", async () => {
    // A process has a new id and reports all that it has settled.
    const budgets = new SharedBudgets(partOf("w5"));
    await expect(budgets.reserve("acme", { tokens: 1, costUsd: null }, live)).rejects.toThrow("price of this model");
    await expect(budgets.reserve("acme", call, live)).rejects.toBeInstanceOf(BudgetSpent);
    await database.query("update troupe.budget set since = since - interval '40 days' where tenant = 'acme'");
    (await budgets.reserve("acme", call, live)).settle({ tokens: 1, costUsd: 0.01 });
    await budgets.flush();
    const { rows } = await database.query("select spent_usd::float as usd from troupe.budget where tenant = 'acme'");
    expect(rows).toEqual([{ usd: 0.01 }]);
  });

  it("limits that workers share charge what a lost worker held, and correct it when the worker is back", async () => {
    await setBudget(database, "lost", { costUsd: 1, tokens: null, period: "total" });
    const lost = new SharedBudgets(partOf("w4"));
    (await lost.reserve("lost", call, live)).settle({ tokens: 1, costUsd: 0.2 });
    await lost.flush();
    const held = await lost.reserve("lost", { tokens: 1, costUsd: 0.7 }, live);
    const next = new SharedBudgets(partOf("w1")).reserve("lost", { tokens: 1, costUsd: 0.5 }, live);
    expect(await Promise.race([next.then(() => "entered"), sleep(400).then(() => "waits")])).toBe("waits");
    await beat("w4", "-1 s");
    await next;
    const spent = async () =>
      (await database.query("select spent_usd::float as usd from troupe.budget where tenant = 'lost'")).rows[0];
    expect(await spent()).toEqual({ usd: 0.9 });
    await beat("w4", "1 day");
    held.settle({ tokens: 1, costUsd: 0.1 });
    await lost.flush();
    expect(await spent()).toEqual({ usd: 0.3 });
  });
});
