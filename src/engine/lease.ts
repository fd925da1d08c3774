/**
 * Shows that a worker is alive: a row that it renews. A worker whose lease has expired may be replaced at any moment, so
 * it must start nothing with effects.
 */

import type { Queries } from "../lib/queries.ts";

export interface LeaseOptions {
  readonly queries: Queries;
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
  /** Clocks, replaced by tests. */
  readonly now?: () => { readonly monotonic: number; readonly wall: number };
}

const clocks = () => ({ monotonic: performance.now(), wall: Date.now() });

export class Lease {
  readonly #options: LeaseOptions;
  #until = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
  #timer: NodeJS.Timeout | undefined;
  #isDraining = false;
  #lapses = 0;
  #expiry = new AbortController();
  #expiryTimer: NodeJS.Timeout | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Resolves after the first renewal. */
  async start(): Promise<void> {
    await this.renew();
    this.#timer = setInterval(() => void this.renew().catch(() => undefined), this.#options.leaseMs / 3);
  }

  /**
   * False when another worker may have taken over. Compares two clocks: the monotonic one stands still while a virtual
   * machine is suspended, and the wall clock can be set.
   */
  get isValid(): boolean {
    const { monotonic, wall } = (this.#options.now ?? clocks)();
    return monotonic < this.#until.monotonic && wall < this.#until.wall;
  }

  /** Number of times that the lease was renewed after it had expired. Others may have taken over in between. */
  get lapses(): number {
    return this.#lapses;
  }

  /** Aborted when the current lease expires. A renewal after that starts a new lease with a new signal. */
  get expired(): AbortSignal {
    return this.#expiry.signal;
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.renew();
  }

  /** Removes the row, so that nobody waits for the lease to expire. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#expiryTimer);
    this.#until = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
    await this.#options.queries.query("delete from troupe.worker where id = $1", [this.#options.worker.id]);
  }

  async renew(): Promise<void> {
    const { queries, worker, leaseMs } = this.#options;
    // Taken before the request: the server's time of expiry is never earlier than this.
    const { monotonic, wall } = (this.#options.now ?? clocks)();
    await queries.query(
      `insert into troupe.worker(id, host, pid, pool, version, concurrency, draining, expires_at, tenant)
       values($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8::float * interval '1 ms', $9)
       on conflict (id) do update set expires_at = excluded.expires_at, draining = excluded.draining`,
      [
        ...[worker.id, worker.host, worker.pid, worker.pool, worker.version, worker.concurrency, this.#isDraining],
        ...[leaseMs, worker.tenant ?? null],
      ],
    );
    if (!this.isValid) {
      if (this.#until.wall > Number.NEGATIVE_INFINITY) this.#lapses++;
      this.#expiry.abort();
      this.#expiry = new AbortController();
    }
    this.#until = { monotonic: monotonic + leaseMs, wall: wall + leaseMs };
    clearTimeout(this.#expiryTimer);
    this.#expiryTimer = setTimeout(() => this.#expiry.abort(), leaseMs).unref();
  }
}
