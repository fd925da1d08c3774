/**
 * The gate in front of a provider, as plain data: what closes it, what opens it again. A rate limit closes it for as
 * long as the provider said; a row of failures closes it for a fixed time (a circuit breaker). In both cases one
 * request, the probe, then goes first, and its fate decides for everyone.
 */
import { plural } from "../lib/text.ts";
import { ModelError, type ModelErrorKind } from "./model-error.ts";

type Gate =
  | { readonly state: "open" }
  | ({ readonly state: "shut"; readonly until: number } & Closure)
  | ({ readonly state: "probing" } & Closure);

export interface Closure {
  readonly reason: "rate_limit" | "outage";
  /** When it was first shut, kept while probes fail. */
  readonly since: number;
  readonly cause: ModelError;
}

export interface Breaker {
  readonly gate: Gate;
  /** Failures in a row, of the kinds that speak of an outage. */
  readonly failures: number;
}

export interface BreakerLimits {
  /** Failures in a row that open the circuit. */
  readonly failures: number;
  readonly openMs: number;
}

export const closedCircuit: Breaker = { gate: { state: "open" }, failures: 0 };

/** The request was taken on: the provider works. Only a probe ends a rate limit, as others may have started before it. */
export function afterSuccess({ gate }: Breaker, isProbe: boolean): Breaker {
  const opens = gate.state === "open" || isProbe || gate.reason === "outage";
  return { gate: opens ? { state: "open" } : gate, failures: 0 };
}

export function afterFailure(
  breaker: Breaker,
  failure: { readonly error: ModelError; readonly delayMs: number; readonly isProbe: boolean; readonly now: number },
  limits: BreakerLimits,
): Breaker {
  const { error, delayMs, isProbe, now } = failure;
  const { gate } = breaker;
  const since = gate.state === "open" ? now : gate.since;
  if (error.kind === "rate_limit") {
    // Someone who started before the probe says nothing new; the probe decides.
    if (gate.state === "probing" && !isProbe) return breaker;
    const until = Math.max(now + delayMs, gate.state === "shut" ? gate.until : 0);
    return { gate: { state: "shut", reason: "rate_limit", until, since, cause: error }, failures: 0 };
  }
  if (!outage.has(error.kind)) return afterSuccess(breaker, isProbe);

  const failures = breaker.failures + 1;
  if (isProbe && gate.state === "probing" && gate.reason === "rate_limit" && failures < limits.failures) {
    const until = now + Math.max(delayMs, SHORTEST_REST_MS);
    return { gate: { ...gate, state: "shut", until }, failures };
  }
  if (isProbe || (gate.state === "open" && failures >= limits.failures)) {
    return { gate: { state: "shut", reason: "outage", until: now + limits.openMs, since, cause: error }, failures };
  }
  return { gate, failures };
}

/** The probe came to nothing (its caller went away): the next one may go at once. */
export function afterAbandonedProbe(breaker: Breaker, now: number): Breaker {
  if (breaker.gate.state !== "probing") return breaker;
  return { ...breaker, gate: { ...breaker.gate, state: "shut", until: now } };
}

const outage: ReadonlySet<ModelErrorKind> = new Set(["server", "network", "timeout"]);
const SHORTEST_REST_MS = 1_000;

/** What someone is told who will not be let through. */
export function refusal(gate: Closure, waitedMs: number, remainingMs: number): ModelError {
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
