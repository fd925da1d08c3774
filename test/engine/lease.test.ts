/** A worker's lease on a real Postgres server: a busy event loop neither loses it nor hides that it has expired. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Lease } from "../../src/engine/lease.ts";
import { deferred } from "../../src/lib/deferred.ts";
import { LeaseGuard } from "../../src/runtime/cluster/lease-guard.ts";
import { type Database, driverPath, openDatabase } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";

const programs = postgresPrograms();
const LEASE_MS = 400;
const MARK = `TROUPE_SHELL=${crypto.randomUUID()}.`;
/** Only there can the thread find commands. */
const hasProcesses = existsSync("/proc/self/environ");
const HANG = { timeout: 60_000, interval: 10 };

if (programs === undefined) it.skip("a lease is renewed by a thread (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("a lease", () => {
  let server: PostgresServer;
  let database: Database;
  let lease: Lease;
  const reports: string[] = [];

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    database = await openDatabase({ url: server.url, connections: 1 });
    await migrate(database);
    const worker = { id: "w", host: "h", pid: process.pid, pool: "default", version: "1", concurrency: 1 };
    const own = { queries: database, url: server.url, driver: driverPath(), worker };
    lease = new Lease({ ...own, leaseMs: LEASE_MS, commandMark: MARK });
    await lease.start();
  });
  afterAll(async () => {
    await lease?.stop().catch(() => undefined);
    await database?.close();
    server?.remove();
  });

  /** Blocks the event loop. */
  const block = (ms: number): void => {
    for (const end = performance.now() + ms; performance.now() < end; );
  };
  const renewedAt = async (): Promise<number> => {
    const { rows } = await database.query<{ ms: number }>(
      "select (extract(epoch from expires_at) * 1000)::float8 as ms from troupe.worker",
    );
    return rows[0]?.ms ?? 0;
  };
  const claim = { workId: "x", condition: "true", values: [] };
  const guard = (condition = "true") =>
    new LeaseGuard({ lease, queries: database, report: (line) => reports.push(line) }).of({ ...claim, condition });
  const live = new AbortController().signal;

  it("a lease is renewed while the event loop is blocked, but not longer than the time of one lease", async () => {
    const isRenewedWhileBlocked = async (): Promise<boolean> => {
      await expect.poll(() => lease.isValid, HANG).toBe(true);
      const [before, { lapses }] = [await renewedAt(), lease];
      block(LEASE_MS * 0.8);
      return lease.isValid && lease.lapses === lapses && (await renewedAt()) > before;
    };
    // On a busy machine the thread itself may get no processor for the time of a lease.
    await expect.poll(isRenewedWhileBlocked, HANG).toBe(true);
    const { lapses } = lease;
    block(LEASE_MS * 2.5);
    expect(lease.isValid).toBe(false);
    await expect.poll(() => lease.isValid, HANG).toBe(true);
    expect(lease.lapses).toBeGreaterThan(lapses);
  });

  it("a lease that expires stops running work, even commands while the event loop is blocked", async () => {
    const [own, lost] = [guard(), guard("false")];
    const started = deferred<void>();
    const running = own.run({ name: "bash" }, live, async (signal) => {
      started.resolve();
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    running.catch(() => undefined);
    await started.promise;
    const [name = "", value] = MARK.split("=");
    const command = spawn("sleep", ["60"], { env: { ...process.env, [name]: `${value}1` } });
    const expiry = lease.expired;
    server.stop("immediate");
    if (hasProcesses) {
      for (const end = performance.now() + 30_000; isRunning(command) && performance.now() < end; ) block(5);
      expect({ isRunning: isRunning(command), isValid: lease.isValid }).toEqual({ isRunning: false, isValid: false });
    }
    await expect(running).rejects.toThrow("this worker lost its lease");
    expect(expiry.aborted).toBe(true);
    expect(() => own.assertValid()).toThrow("has lost its lease");
    const waiting = [own, lost].map((one) => one.run({ name: "mcp_tool" }, live, async () => "acted"));
    const ends = Promise.allSettled(waiting);
    server.start();
    const [acted, refused] = await ends;
    expect(acted).toEqual({ status: "fulfilled", value: "acted" });
    expect(String(refused?.status === "rejected" && refused.reason)).toContain("has lost its lease");
    expect(reports).toEqual([
      "stopped a call of bash: another worker may have its session",
      "refused a command: another worker may have its session",
      "refused a call of mcp_tool: another worker may have its session",
    ]);
    command.kill("SIGKILL");
  });

  it("a lease begins although the server is too slow for the first queries, and reports it", async () => {
    const worker = { id: "late", host: "h", pid: process.pid, pool: "default", version: "1", concurrency: 1 };
    const said: string[] = [];
    const late = new Lease({
      ...{ queries: database, url: server.url, driver: driverPath(), worker, leaseMs: LEASE_MS },
      report: (line) => said.push(line),
    });
    const { starting } = await database.transaction(async (queries) => {
      await queries.query("lock table troupe.worker in exclusive mode");
      const begun = late.start();
      begun.catch(() => undefined);
      await expect.poll(() => said.length).toBeGreaterThan(0);
      return { starting: begun };
    });
    await starting;
    await expect.poll(() => late.isValid).toBe(true);
    await expect.poll(() => said.length).toBeGreaterThan(1);
    expect(said.slice(0, 2)).toEqual([
      expect.stringContaining("the lease cannot be renewed: "),
      "the lease is renewed again",
    ]);
    await late.stop();
  });
});

const isRunning = ({ pid }: ChildProcess): boolean => existsSync(`/proc/${pid}`) && !isZombie(pid);

/** A process that has ended stays in the table until its parent looks, and the parent is blocked. */
const isZombie = (pid: number | undefined): boolean => {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return true;
  }
};
