/**
 * Shows that a worker is alive: a row that a thread of its own renews (`lease-thread.ts`). A worker whose lease has
 * expired may be replaced at any moment, so it must start nothing with effects.
 *
 * The worker uses nine tenths of its lease. In the rest, what still runs is ended before another worker can take over.
 */

import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { Queries } from "../lib/queries.ts";
import { withServerTimeouts } from "../lib/server-timeouts.ts";
import {
  LEASE_MEMORY_BYTES,
  type LeaseOrder,
  type LeaseReply,
  type LeaseThreadData,
  leaseClocks,
  leaseMemory,
  leaseProgram,
} from "./lease-thread.ts";

export interface LeaseOptions {
  readonly queries: Queries;
  readonly url: string;
  /** Path of the module `pg`, for the thread. */
  readonly driver: string;
  readonly worker: {
    readonly id: string;
    readonly host: string;
    readonly pid: number;
    readonly pool: string;
    readonly version: string;
    readonly concurrency: number;
    /** Set if it serves only this tenant. */
    readonly tenant?: string;
  };
  readonly leaseMs: number;
  /** An entry `NAME=prefix` of the environment of commands. They are killed when the lease expires. */
  readonly commandMark?: string;
  /** Reports when renewals begin to fail, and when they are successful again, one line each. */
  report?(line: string): void;
}

const RENEW = `
  insert into troupe.worker(id, host, pid, pool, version, concurrency, draining, expires_at, tenant)
  values($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8::float * interval '1 ms', $9)
  on conflict (id) do update set expires_at = excluded.expires_at, draining = excluded.draining`;
const DRAINING_INDEX = 6;
const USABLE_SHARE = 0.9;
const REPLY_MS = 30_000;
const FIRST_TRIES = 10;
const RESTART_MS = 500;
const EXPIRED_LOOK_MS = 50;

export class Lease {
  readonly #options: LeaseOptions;
  readonly #memory = new SharedArrayBuffer(LEASE_MEMORY_BYTES);
  readonly #cells = new BigInt64Array(this.#memory);
  readonly #clocks = leaseClocks(createRequire(import.meta.url));
  readonly #waiting = new Map<number, (error?: Error) => void>();
  #thread: Worker | undefined;
  #isDraining = false;
  #isStopped = false;
  #orders = 0;
  #seenLapses = 0;
  #expiry = new AbortController();
  #timers: NodeJS.Timeout[] = [];

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Resolves after the first renewal. */
  async start(): Promise<void> {
    this.#showLife();
    this.#timers.push(setInterval(() => this.#showLife(), this.#options.leaseMs / 6));
    this.#startThread();
    // A query of the thread takes half a lease at most, so a slow server needs several tries.
    for (let left = FIRST_TRIES; left > 0; left--) {
      const error = await this.renew().then(
        () => undefined,
        (failure: unknown) => failure,
      );
      if (error === undefined) break;
      if (left === 1) throw error;
    }
    this.#watch();
  }

  /** False when another worker may have taken over. Reads clocks, so an event loop that was busy does not matter. */
  get isValid(): boolean {
    return (
      this.#clocks.monotonic() < Atomics.load(this.#cells, leaseMemory.until) &&
      this.#clocks.outside() < Atomics.load(this.#cells, leaseMemory.untilOutside)
    );
  }

  /** Number of times that the lease was renewed after it had expired. Others may have taken over in between. */
  get lapses(): number {
    return Number(Atomics.load(this.#cells, leaseMemory.lapses));
  }

  /** Aborted when the current lease expires. A renewal after that starts a new lease with a new signal. */
  get expired(): AbortSignal {
    this.#refresh();
    return this.#expiry.signal;
  }

  /** The worker takes nothing new. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.renew();
  }

  async undrain(): Promise<void> {
    this.#isDraining = false;
    await this.renew();
  }

  /** Removes the row, so that nobody waits for the lease to expire. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    Atomics.store(this.#cells, leaseMemory.until, 0n);
    await this.#thread?.terminate();
    await this.#options.queries.query("delete from troupe.worker where id = $1", [this.#options.worker.id]);
  }

  async renew(): Promise<void> {
    const id = ++this.#orders;
    const order: LeaseOrder = { kind: "renew", id, draining: this.#isDraining };
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => settle(new Error("The lease was not renewed in time.")), REPLY_MS);
      const settle = (error?: Error): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        if (error) reject(error);
        else resolve();
      };
      this.#waiting.set(id, settle);
      this.#thread?.postMessage(order);
    });
  }

  #showLife(): void {
    Atomics.store(this.#cells, leaseMemory.lastSeen, this.#clocks.monotonic());
  }

  #startThread(): void {
    const { url, driver, worker, leaseMs, commandMark } = this.#options;
    const { id, host, pid, pool, version, concurrency, tenant = null } = worker;
    const workerData: LeaseThreadData = {
      ...{ memory: this.#memory, indexes: leaseMemory, driver, url: withServerTimeouts(url), leaseMs },
      ...{ statement: RENEW, values: [id, host, pid, pool, version, concurrency, false, leaseMs, tenant] },
      ...{ drainingIndex: DRAINING_INDEX, usableMs: leaseMs * USABLE_SHARE, mark: commandMark },
    };
    const thread = new Worker(leaseProgram(), { eval: true, workerData });
    this.#thread = thread;
    thread.on("message", (reply: LeaseReply) => {
      if ("trouble" in reply) return this.#report(reply.trouble);
      const { id, error } = reply;
      this.#waiting.get(id)?.(error === undefined ? undefined : new Error(error));
    });
    thread.on("error", (error) => {
      for (const settle of [...this.#waiting.values()]) settle(error);
    });
    // Without its thread the lease expires. A new one starts a new lease.
    thread.on("exit", () => {
      if (!this.#isStopped) this.#timers.push(setTimeout(() => this.#restart(), RESTART_MS));
    });
  }

  #report(trouble: string | null): void {
    const { report } = this.#options;
    report?.(trouble === null ? "the lease is renewed again" : `the lease cannot be renewed: ${trouble}`);
  }

  #restart(): void {
    if (this.#isStopped) return;
    this.#startThread();
    void this.renew().catch(() => undefined);
  }

  /** Aborts `expired` in time when the event loop is free. Effects also ask `isValid`. */
  #watch(): void {
    this.#refresh();
    const leftMs = Number(Atomics.load(this.#cells, leaseMemory.until) - this.#clocks.monotonic()) / 1e6;
    const timer = setTimeout(() => this.#watch(), Math.max(leftMs, leftMs > 0 ? 1 : EXPIRED_LOOK_MS));
    this.#timers = [...this.#timers.slice(0, 1), timer.unref()];
  }

  #refresh(): void {
    const { lapses } = this;
    if (lapses !== this.#seenLapses) {
      this.#seenLapses = lapses;
      this.#expiry.abort();
      this.#expiry = new AbortController();
    }
    if (!this.isValid) this.#expiry.abort();
  }
}
