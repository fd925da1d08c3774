/**
 * The gate in front of a provider, as plain data. A rate limit blocks requests for as long as the provider asked. A
 * series of failures blocks them for a fixed time (a circuit breaker). After either, one request, the probe, goes first, and its
 * result decides for all callers.
 */
import { plural } from "../lib/text.ts";
import { ModelError, type ModelErrorKind } from "./model-error.ts";

type Gate =
  | { readonly state: "passing" }
  | ({ readonly state: "blocked"; readonly until: number } & BlockedGate)
  | ({ readonly state: "probing" } & BlockedGate);

export interface BlockedGate {
  readonly reason: "rate_limit" | "outage";
  /** Time when the gate first blocked. Does not change while probes fail. */
  readonly since: number;
  readonly cause: ModelError;
}

export interface Breaker {
  readonly gate: Gate;
  /** Number of consecutive failures that indicate an outage. */
  readonly failures: number;
}

export interface BreakerLimits {
  /** Number of consecutive failures after which the gate blocks. */
  readonly failures: number;
  /** How long the gate blocks after an outage. */
  readonly blockedMs: number;
}

export const noFailures: Breaker = { gate: { state: "passing" }, failures: 0 };

/**
 * Records that the provider accepted a request. Only a probe ends a rate limit: other requests may have started before
 * it.
 */
export function afterSuccess({ gate }: Breaker, isProbe: boolean): Breaker {
  const passes = gate.state === "passing" || isProbe || gate.reason === "outage";
  return { gate: passes ? { state: "passing" } : gate, failures: 0 };
}

export function afterFailure(
  breaker: Breaker,
  failure: { readonly error: ModelError; readonly delayMs: number; readonly isProbe: boolean; readonly now: number },
  limits: BreakerLimits,
): Breaker {
  const { error, delayMs, isProbe, now } = failure;
  const { gate } = breaker;
  const since = gate.state === "passing" ? now : gate.since;
  if (error.kind === "rate_limit") {
    // A request that started before the probe gives no new information. The probe decides.
    if (gate.state === "probing" && !isProbe) return breaker;
    const until = Math.max(now + delayMs, gate.state === "blocked" ? gate.until : 0);
    return { gate: { state: "blocked", reason: "rate_limit", until, since, cause: error }, failures: 0 };
  }
  if (!outage.has(error.kind)) return afterSuccess(breaker, isProbe);

  const failures = breaker.failures + 1;
  if (isProbe && gate.state === "probing" && gate.reason === "rate_limit" && failures < limits.failures) {
    const until = now + Math.max(delayMs, MIN_BLOCK_MS);
    return { gate: { ...gate, state: "blocked", until }, failures };
  }
  if (isProbe || (gate.state === "passing" && failures >= limits.failures)) {
    return {
      gate: { state: "blocked", reason: "outage", until: now + limits.blockedMs, since, cause: error },
      failures,
    };
  }
  return { gate, failures };
}

/** Records that the probe was cancelled by its caller. The next probe may start at once. */
export function afterAbandonedProbe(breaker: Breaker, now: number): Breaker {
  if (breaker.gate.state !== "probing") return breaker;
  return { ...breaker, gate: { ...breaker.gate, state: "blocked", until: now } };
}

const outage: ReadonlySet<ModelErrorKind> = new Set(["server", "network", "timeout"]);
const MIN_BLOCK_MS = 1_000;

/** Returns the error for a caller that is not admitted. */
export function refusal(gate: BlockedGate, waitedMs: number, remainingMs: number): ModelError {
  const { cause, reason } = gate;
  const waited = plural(Math.round(waitedMs / 1_000), "second");
  const remaining = Math.ceil(remainingMs / 1_000);
  const message =
    reason === "rate_limit"
      ? `${cause.provider}: still rate limited after waiting ${waited}`
      : `${cause.provider}: still failing after waiting ${waited}; the last error was: ${cause.message}`;
  return new ModelError(message, {
    kind: cause.kind,
    provider: cause.provider,
    cause,
    ...(cause.statusCode === undefined ? {} : { statusCode: cause.statusCode }),
    ...(remainingMs > 0 ? { retryAfterMs: remainingMs } : {}),
    hint:
      remaining > 0
        ? `Try again in ${plural(remaining, "second")}, or choose another model.`
        : "Try again later, or choose another model.",
  });
}
