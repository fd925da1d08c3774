/**
 * Request rates and concurrency that all workers share. Rights are drawn in blocks: all requests of this process that wait
 * for the same limit share one statement. A right to send expires with its slot, and a place counts while the worker's
 * lease is valid. After a rate limit of the provider, one worker probes.
 */

import { type BlockOptions, BlockQueue, type BlockWaiter, FREE_MS } from "./block-queue.ts";

export interface SharedRatesOptions extends BlockOptions {
  /** The longest time that a blocked gate holds a request (default: 180 s). */
  readonly longestGateMs?: number;
}

export interface RateWait {
  readonly reason: "rate" | "concurrency" | "gate";
  /** Time until the next attempt. */
  readonly delayMs: number;
  /** Number of waiting requests of this process. */
  readonly waiting: number;
}

/** The right to one request. The holder must call `release` last. */
export interface RateRight {
  accepted(): void;
  /** The provider refused the request because of its rate: nobody sends for this time. */
  refused(delayMs: number): void;
  release(): void;
}

/** Thrown when the gate stays shut for longer than a request may wait. */
export class GateShut extends Error {
  readonly waitMs: number;

  constructor(name: string, waitMs: number) {
    super(`The provider limits the requests of all workers to ${name}.`);
    this.waitMs = waitMs;
  }
}

interface Drawn {
  readonly name: string;
  readonly granted: number;
  readonly valid_ms: number;
  readonly wait_ms: number;
  readonly reason: RateWait["reason"] | "lease" | null;
  readonly probe: boolean;
}

interface Request {
  readonly since: number;
  readonly onWait: ((wait: RateWait) => void) | undefined;
  /** The last reason that it was told. */
  told?: RateWait["reason"];
}

const LONGEST_GATE_MS = 180_000;
const LONGEST_PAUSE_MS = 1_000;
const SHORTEST_PAUSE_MS = 20;

export class SharedRates {
  readonly #options: SharedRatesOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: SharedRatesOptions) {
    this.#options = options;
  }

  /**
   * Resolves when a request may be sent at once. `names` are limits, the most specific one first: the first that is
   * configured applies. Rejects with `GateShut` or the abort reason.
   */
  enter(names: readonly string[], signal: AbortSignal, onWait?: (wait: RateWait) => void): Promise<RateRight> {
    const key = names[0] ?? "";
    const line = this.#lines.get(key) ?? new Line(names, this.#options);
    this.#lines.set(key, line);
    return line.enter(signal, onWait);
  }
}

/** All requests of this process to one model. */
class Line {
  readonly #names: readonly string[];
  readonly #options: SharedRatesOptions;
  readonly #queue = new BlockQueue<Request, RateRight>((waiting) => this.#step(waiting));
  #held = 0;
  /** Until then nothing is known to limit these names. */
  #freeUntil = 0;
  /** Requests of this process were counted, so their ends are reported. */
  #isLimited = false;

  constructor(names: readonly string[], options: SharedRatesOptions) {
    this.#names = names;
    this.#options = options;
  }

  async enter(signal: AbortSignal, onWait: Request["onWait"]): Promise<RateRight> {
    signal.throwIfAborted();
    if (performance.now() >= this.#freeUntil) return this.#queue.enter({ since: performance.now(), onWait }, signal);
    this.#held++;
    return this.#right(this.#names[0] ?? "", false);
  }

  async #step(waiting: readonly BlockWaiter<Request, RateRight>[]): Promise<number> {
    const { queries, workerId, leaseMs } = this.#options;
    const sentAt = performance.now();
    if (await this.#isUnlimited()) {
      this.#freeUntil = sentAt + FREE_MS;
      for (const waiter of waiting) {
        this.#held++;
        waiter.admit(this.#right(this.#names[0] ?? "", false));
      }
      return 0;
    }
    const { rows } = await queries.query<Drawn>("select * from troupe.draw_requests($1, $2, $3, $4, $5)", [
      this.#names,
      workerId,
      this.#held,
      waiting.length,
      leaseMs,
    ]);
    const [drawn] = rows;
    if (!drawn) throw new Error("The limit has no row.");
    this.#isLimited = true;
    this.#admit(drawn, sentAt);
    return this.#queue.waiting.length > 0 ? this.#hold(drawn) : 0;
  }

  /** Also false while a gate is shut, or was and nobody has probed. */
  async #isUnlimited(): Promise<boolean> {
    const { count } = await this.#options.queries.query(
      `select 1 from troupe.rate_limit where name = any($1)
         and (requests is not null or concurrency is not null or gate_until is not null) limit 1`,
      [this.#names],
    );
    return count === 0;
  }

  #admit({ name, granted, valid_ms, probe }: Drawn, sentAt: number): void {
    // Measured from before the statement: the server counts from later on.
    const isExpired = performance.now() > sentAt + valid_ms;
    const { waiting } = this.#queue;
    if (granted > 0 && (isExpired || granted > waiting.length)) this.#queue.report();
    if (isExpired || granted === 0) {
      if (probe) void this.#report("prober = null", name);
      return;
    }
    for (const waiter of waiting.slice(0, granted)) {
      this.#held++;
      waiter.admit(this.#right(name, probe));
    }
  }

  #right(name: string, isProbe: boolean): RateRight {
    let phase: "sent" | "decided" | "released" = "sent";
    return {
      accepted: () => {
        if (phase !== "sent") return;
        phase = "decided";
        if (isProbe) void this.#report("gate_until = null, prober = null", name);
      },
      refused: (delayMs) => {
        if (phase === "released") return;
        phase = "decided";
        void this.#shut(name, delayMs, isProbe);
      },
      release: () => {
        if (phase === "released") return;
        if (phase === "sent" && isProbe) void this.#report("prober = null", name);
        phase = "released";
        this.#held--;
        if (this.#isLimited) this.#queue.report();
      },
    };
  }

  /** Changes the gate. If the database is unreachable, the gate stays as it is, and the next reply of the provider decides. */
  async #report(change: string, name: string): Promise<void> {
    const { queries, workerId } = this.#options;
    const text = `update troupe.rate_limit set ${change} where name = $1 and prober = $2`;
    await queries.query(text, [name, workerId]).catch(() => undefined);
    this.#queue.wake();
  }

  /** Shuts the gate. A request that was sent before the probe says nothing new. */
  async #shut(name: string, delayMs: number, isProbe: boolean): Promise<void> {
    this.#freeUntil = 0;
    await this.#options.queries
      .query(
        `insert into troupe.rate_limit as l (name, gate_until) values($1, clock_timestamp() + $2::float * interval '1 ms')
         on conflict (name) do update set gate_until = greatest(l.gate_until, excluded.gate_until), prober = null
         where $3 or l.prober is null`,
        [name, Math.max(0, delayMs), isProbe],
      )
      .catch(() => undefined);
    this.#queue.wake();
  }

  /** Tells the waiting requests why they wait. Returns the time until the next attempt. */
  #hold({ name, reason, wait_ms, granted }: Drawn): number {
    if (granted > 0 && reason === null) return 0;
    const delayMs = Math.max(wait_ms, SHORTEST_PAUSE_MS);
    const { longestGateMs = LONGEST_GATE_MS } = this.#options;
    for (const { wanted, reject } of this.#queue.waiting) {
      if (reason !== null && reason !== "lease" && wanted.told !== reason) {
        wanted.told = reason;
        wanted.onWait?.({ reason, delayMs, waiting: this.#queue.waiting.length });
      }
      if (reason !== "gate" || performance.now() - wanted.since + delayMs < longestGateMs) continue;
      reject(new GateShut(name, delayMs));
    }
    return this.#queue.waiting.length > 0 ? Math.min(delayMs, LONGEST_PAUSE_MS) : 0;
  }
}
