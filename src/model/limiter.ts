/**
 * Limits the requests of all agents to one model of one provider, so that many agents behave like one considerate
 * caller. A rate limit pauses all of them, one probe tries, and then the rest follow a few at a time.
 */
import type { Stamp } from "../lib/stamp.ts";
import {
  afterAbandonedProbe,
  afterFailure,
  afterSuccess,
  type BlockedGate,
  type Breaker,
  type BreakerLimits,
  noFailures,
  refusal,
} from "./breaker.ts";
import type { ModelError } from "./model-error.ts";
import { enterBoth, type SharedLimit } from "./shared-limits.ts";

export interface LimiterOptions {
  readonly stamp: Stamp;
  /** Maximum number of concurrent requests. Local servers need a low limit; hosted ones report their own. */
  readonly maxConcurrency?: number;
  readonly breaker?: BreakerLimits;
  /** The longest time that a blocked gate holds a call. */
  readonly longestWaitMs?: number;
  /** After a rate limit: at most `starts` requests in any `slotMs`, for `calmMs`. */
  readonly ramp?: { readonly starts: number; readonly slotMs: number; readonly calmMs: number };
  /** A limit that other processes share. Each request needs it, too. */
  readonly shared?: SharedLimit;
}

export interface LimiterWait {
  readonly reason: BlockedGate["reason"] | "concurrency";
  /** Time until the next attempt; absent while it is unknown. */
  readonly delayMs?: number;
  /** Number of waiting calls, including this one. */
  readonly waiting: number;
}

/**
 * A model call with all its retries. Lets the limiter distinguish a single caller from a crowd, and preserves the order
 * of arrival.
 */
export interface QueuedCall {
  /**
   * Resolves when a request may start. Rejects with a `ModelError` when waiting is pointless, or with the abort reason.
   */
  enter(signal: AbortSignal, onWait?: (wait: LimiterWait) => void): Promise<Pass>;
  leave(): void;
}

/** Permission for one request. The caller must call `release` last; calling it again is harmless. */
export interface Pass {
  /** Call when the provider starts to reply. */
  accepted(): void;
  /** `delayMs` is how long to wait if the error is a rate limit. */
  failed(error: ModelError, delayMs: number): void;
  /** Waits for the right to send another request in place of the first. Absent if nothing limits it. */
  again?(): Promise<void>;
  release(): void;
}

interface Waiter {
  readonly position: number;
  /** Low-priority waiters come after all others. */
  readonly yields: boolean;
  readonly enteredAt: number;
  readonly onWait: ((wait: LimiterWait) => void) | undefined;
  readonly admit: (pass: Pass) => void;
  readonly reject: (reason: unknown) => void;
  lastReported: string;
}

type Admission =
  | { readonly type: "admit"; readonly probe: boolean }
  | { readonly type: "wait"; readonly reason: LimiterWait["reason"] | "ramp"; readonly until?: number };

export class Limiter {
  readonly #stamp: Stamp;
  readonly #maxConcurrency: number;
  readonly #breakerLimits: BreakerLimits;
  readonly #longestWaitMs: number;
  readonly #ramp: { readonly starts: number; readonly slotMs: number; readonly calmMs: number };
  readonly #shared: SharedLimit | undefined;
  readonly #waiting: Waiter[] = [];
  #breaker: Breaker = noFailures;
  /** The current limit: halved by a rate limit, increased by one with each success. */
  #concurrency: number;
  #running = 0;
  #joined = 0;
  #lastPosition = 0;
  #recentStarts: number[] = [];
  #pacedUntil = Number.NEGATIVE_INFINITY;
  #alarm: { readonly at: number; readonly stop: AbortController } | undefined;

  constructor(options: LimiterOptions) {
    this.#stamp = options.stamp;
    this.#maxConcurrency = Math.max(1, options.maxConcurrency ?? Number.POSITIVE_INFINITY);
    this.#concurrency = this.#maxConcurrency;
    this.#breakerLimits = options.breaker ?? { failures: 5, blockedMs: 30_000 };
    this.#longestWaitMs = options.longestWaitMs ?? 180_000;
    this.#ramp = options.ramp ?? { starts: 5, slotMs: 100, calmMs: 60_000 };
    this.#shared = options.shared;
  }

  join(priority?: "low"): QueuedCall {
    const position = ++this.#lastPosition;
    let left = false;
    // A low-priority call does not count as part of a crowd.
    const weight = priority === "low" ? 0 : 1;
    this.#joined += weight;
    return {
      enter: (signal, onWait) => {
        const entering = this.#enter({ position, yields: priority === "low" }, signal, onWait);
        const shared = this.#shared;
        return shared ? entering.then((pass) => enterBoth(pass, shared, signal, onWait)) : entering;
      },
      leave: () => {
        if (left) return;
        left = true;
        this.#joined -= weight;
        this.#pump();
      },
    };
  }

  #enter(
    who: Pick<Waiter, "position" | "yields">,
    signal: AbortSignal,
    onWait?: (wait: LimiterWait) => void,
  ): Promise<Pass> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = (): void => {
        this.#remove(waiter);
        waiter.reject(signal.reason);
        this.#pump();
      };
      const waiter: Waiter = {
        ...who,
        enteredAt: this.#stamp.monotonic(),
        onWait,
        lastReported: "",
        admit: (pass) => {
          signal.removeEventListener("abort", abort);
          resolve(pass);
        },
        reject: (reason) => {
          signal.removeEventListener("abort", abort);
          reject(reason);
        },
      };
      signal.addEventListener("abort", abort, { once: true });
      // Oldest call first: newcomers do not overtake a retry.
      const index = this.#waiting.findIndex((other) => isBefore(who, other));
      this.#waiting.splice(index === -1 ? this.#waiting.length : index, 0, waiter);
      this.#pump();
    });
  }

  /** Admits waiters, rejects those that waited too long, and sets a timer for the next change. */
  #pump(): void {
    const now = this.#stamp.monotonic();
    let admission = this.#admission(now);
    for (let next = this.#waiting[0]; next !== undefined && admission.type === "admit"; next = this.#waiting[0]) {
      this.#waiting.shift();
      next.admit(this.#start(now, admission.probe));
      admission = this.#admission(now);
    }
    this.#dismissHopeless(now);
    this.#reportWaiting(admission, now);
    this.#setAlarm(this.#nextChange(admission));
  }

  #admission(now: number): Admission {
    const { gate } = this.#breaker;
    // A single caller is paced by its own back-off. The breaker is for crowds.
    const held = gate.state !== "passing" && !(gate.reason === "outage" && this.#joined <= 1);
    if (held && gate.state === "probing") return { type: "wait", reason: gate.reason };
    if (held && gate.state === "blocked" && gate.until > now) {
      return { type: "wait", reason: gate.reason, until: gate.until };
    }
    if (this.#running >= Math.floor(this.#concurrency)) return { type: "wait", reason: "concurrency" };
    const slotEnd = (this.#recentStarts[0] ?? Number.NEGATIVE_INFINITY) + this.#ramp.slotMs;
    const full = this.#recentStarts.length >= this.#ramp.starts && slotEnd > now;
    if (full && this.#pacedUntil > now) return { type: "wait", reason: "ramp", until: slotEnd };
    return { type: "admit", probe: held };
  }

  #start(now: number, probe: boolean): Pass {
    const { gate } = this.#breaker;
    if (probe && gate.state === "blocked") {
      const { reason, since, cause } = gate;
      this.#breaker = { ...this.#breaker, gate: { state: "probing", reason, since, cause } };
    }
    this.#running++;
    this.#recentStarts.push(now);
    if (this.#recentStarts.length > this.#ramp.starts) this.#recentStarts.shift();
    return this.#pass(probe);
  }

  #pass(probe: boolean): Pass {
    let phase: "sent" | "decided" | "released" = "sent";
    return {
      accepted: () => {
        if (phase !== "sent") return;
        phase = "decided";
        this.#breaker = afterSuccess(this.#breaker, probe);
        this.#concurrency = Math.min(this.#maxConcurrency, this.#concurrency + 1);
        this.#pump();
      },
      failed: (error, delayMs) => {
        if (phase === "released") return;
        const now = this.#stamp.monotonic();
        const isProbe = probe && phase === "sent";
        phase = "decided";
        if (error.kind === "rate_limit") {
          this.#pacedUntil = now + delayMs + this.#ramp.calmMs;
          if (this.#breaker.gate.state === "passing") this.#concurrency = Math.max(1, Math.ceil(this.#running / 2));
        }
        this.#breaker = afterFailure(this.#breaker, { error, delayMs, isProbe, now }, this.#breakerLimits);
      },
      release: () => {
        if (phase === "released") return;
        if (phase === "sent" && probe) this.#breaker = afterAbandonedProbe(this.#breaker, this.#stamp.monotonic());
        phase = "released";
        this.#running--;
        this.#pump();
      },
    };
  }

  #deadline(waiter: Waiter): number {
    const { gate } = this.#breaker;
    if (gate.state === "passing") return Number.POSITIVE_INFINITY;
    return Math.max(waiter.enteredAt, gate.since) + this.#longestWaitMs;
  }

  #dismissHopeless(now: number): void {
    const { gate } = this.#breaker;
    if (gate.state === "passing") return;
    for (const waiter of [...this.#waiting]) {
      const deadline = this.#deadline(waiter);
      if (now < deadline && (gate.state === "probing" || gate.until <= deadline)) continue;
      this.#remove(waiter);
      waiter.reject(refusal(gate, now - waiter.enteredAt, gate.state === "blocked" ? gate.until - now : 0));
    }
  }

  #reportWaiting(admission: Admission, now: number): void {
    if (admission.type === "admit" || admission.reason === "ramp") return;
    const { reason, until } = admission;
    for (const waiter of this.#waiting) {
      const report = `${reason} ${until}`;
      if (waiter.lastReported === report) continue;
      waiter.lastReported = report;
      const waiting = this.#waiting.length;
      waiter.onWait?.(until === undefined ? { reason, waiting } : { reason, waiting, delayMs: until - now });
    }
  }

  #nextChange(admission: Admission): number | undefined {
    if (this.#waiting.length === 0) return undefined;
    const until = admission.type === "wait" ? (admission.until ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const next = this.#waiting.reduce((earliest, waiter) => Math.min(earliest, this.#deadline(waiter)), until);
    return Number.isFinite(next) ? next : undefined;
  }

  #setAlarm(at: number | undefined): void {
    if (at === this.#alarm?.at) return;
    this.#alarm?.stop.abort();
    this.#alarm = undefined;
    if (at === undefined) return;
    const stop = new AbortController();
    this.#alarm = { at, stop };
    const delay = Math.max(0, Math.ceil(at - this.#stamp.monotonic()));
    this.#stamp.sleep(delay, stop.signal).then(
      () => {
        this.#alarm = undefined;
        this.#pump();
      },
      () => undefined,
    );
  }

  #remove(waiter: Waiter): void {
    const index = this.#waiting.indexOf(waiter);
    if (index !== -1) this.#waiting.splice(index, 1);
  }
}

function isBefore(one: Pick<Waiter, "position" | "yields">, other: Waiter): boolean {
  return one.yields === other.yields ? one.position < other.position : other.yields;
}
