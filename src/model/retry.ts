/**
 * Adds retries to a provider. A request that failed for a temporary reason is repeated after a pause. A `retry` event
 * precedes the pause. All waiting uses the stamp.
 */

import { deferred } from "../lib/deferred.ts";
import { defined } from "../lib/defined.ts";
import type { Stamp } from "../lib/stamp.ts";
import { plural } from "../lib/text.ts";
import type { Limiter, LimiterWait, Pass, QueuedCall } from "./limiter.ts";
import { ModelError, type ModelErrorKind } from "./model-error.ts";
import {
  countSent,
  defineProvider,
  type ModelEnd,
  type ModelEvent,
  type ModelRequest,
  type Provider,
  type Usage,
} from "./provider.ts";

export interface RetryPolicy {
  /** Maximum number of retries in total. */
  readonly retriesBeforeOutput: number;
  /** How many of these may follow a request that had produced output. */
  readonly retriesAfterOutput: number;
  /** How many of these may follow a timeout, which costs minutes each. */
  readonly retriesAfterTimeout: number;
  /** No retry is decided on later than this after the first request was sent. */
  readonly retryWithinMs: number;
  /** Full jitter: a pause is random between 0 and base · 2ⁿ, at most `capMs`. */
  readonly baseMs: number;
  readonly capMs: number;
  /** For a rate limit without a time: this, plus an extra that doubles, plus jitter. */
  readonly rateLimitBaseMs: number;
  readonly rateLimitExtraMs: number;
  /** If the provider asks for a longer wait, the call fails instead. */
  readonly longestWaitMs: number;
}

export const defaultRetryPolicy: RetryPolicy = {
  retriesBeforeOutput: 5,
  retriesAfterOutput: 1,
  retriesAfterTimeout: 2,
  retryWithinMs: 900_000,
  baseMs: 200,
  capMs: 30_000,
  rateLimitBaseMs: 5_000,
  rateLimitExtraMs: 1_000,
  longestWaitMs: 180_000,
};

export interface RetryOptions {
  readonly stamp: Stamp;
  readonly random?: () => number;
  readonly policy?: Partial<RetryPolicy>;
  /** Shared by all callers of one provider and model. */
  readonly limiter?: Limiter;
}

export function withRetry(provider: Provider, options: RetryOptions): Provider {
  const retrying = defineProvider({
    id: provider.id,
    stream: (request, signal) => streamWithRetries({ provider, request, signal, options }),
  });
  return {
    id: provider.id,
    stream(request, signal) {
      countSent(request, -1); // each request counts itself when it starts
      return retrying.stream(request, signal);
    },
  };
}

interface Call {
  readonly provider: Provider;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  readonly options: RetryOptions;
}

async function* streamWithRetries(call: Call): AsyncGenerator<ModelEvent, void> {
  const { stamp, limiter, random = Math.random } = call.options;
  const policy = { ...defaultRetryPolicy, ...call.options.policy };
  const queued = limiter?.join(call.request.priority);
  const tally = { retries: 0, retriesAfterOutput: 0, retriesAfterTimeout: 0 };
  const began = stamp.monotonic();
  try {
    for (;;) {
      const pass = yield* admission(queued, call.signal);
      let decision: RetryDecision;
      let error: ModelError;
      let usage: Usage | undefined;
      countSent(call.request, 1);
      try {
        const { end, output } = yield* oneRequest(call, pass);
        if (end.stop !== "error") return yield end;
        usage = end.usage;
        error = end.error ?? ModelError.incomplete(call.provider.id);
        decision = judge({ error, output, tally, policy, random, tookMs: stamp.monotonic() - began });
        pass?.failed(
          error,
          decision.type === "retry" ? decision.delayMs : (error.retryAfterMs ?? policy.rateLimitBaseMs),
        );
        if (output) tally.retriesAfterOutput++;
        if (error.kind === "timeout") tally.retriesAfterTimeout++;
      } finally {
        pass?.release();
      }
      if (decision.type !== "retry")
        return yield failure(explain({ error, decision, requests: tally.retries + 1, stamp }), usage);
      tally.retries++;
      yield { type: "retry", attempt: tally.retries, delayMs: decision.delayMs, error };
      await stamp.sleep(decision.delayMs, call.signal);
    }
  } finally {
    queued?.leave();
  }
}

/** Waits until the limiter admits the call. Yields a `held` event whenever the reason for the wait changes. */
async function* admission(
  queued: QueuedCall | undefined,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, Pass | undefined> {
  if (!queued) return undefined;
  const waits: LimiterWait[] = [];
  let changed = deferred<undefined>();
  const entering = queued.enter(signal, (wait) => {
    waits.push(wait);
    changed.resolve(undefined);
  });
  let isTaken = false;
  try {
    for (;;) {
      const pass = await Promise.race([entering, changed.promise]);
      if (pass) {
        isTaken = true;
        return pass;
      }
      changed = deferred();
      for (const wait of waits.splice(0)) yield { type: "held", ...wait };
    }
  } finally {
    // The caller stopped reading while the call was held back.
    if (!isTaken) entering.then((pass) => pass.release()).catch(() => undefined);
  }
}

async function* oneRequest(
  { provider, request, signal }: Call,
  pass: Pass | undefined,
): AsyncGenerator<ModelEvent, { end: ModelEnd; output: boolean }> {
  let output = false;
  const accepted = (): void => pass?.accepted();
  const shown = pass?.again ? { ...request, beforeResending: pass.again } : request;
  for await (const event of provider.stream(shown, signal)) {
    if (event.type === "end") {
      if (event.stop !== "error" && event.stop !== "aborted") accepted();
      return { end: event, output };
    }
    if (!output && event.type !== "retry" && event.type !== "warning") {
      output = true;
      accepted();
    }
    yield event;
  }
  return { end: failure(ModelError.incomplete(provider.id)), output };
}

type RetryDecision =
  | { readonly type: "retry"; readonly delayMs: number }
  | { readonly type: "permanent" }
  | { readonly type: "exhausted" }
  | { readonly type: "too_long"; readonly waitMs: number };

interface Case {
  readonly error: ModelError;
  readonly output: boolean;
  readonly tally: Readonly<Record<"retries" | "retriesAfterOutput" | "retriesAfterTimeout", number>>;
  /** Time since the first request was sent. */
  readonly tookMs: number;
  readonly policy: RetryPolicy;
  readonly random: () => number;
}

function judge({ error, output, tally, policy, random, tookMs }: Case): RetryDecision {
  if (!temporary.has(error.kind) || error.retryable === false) return { type: "permanent" };
  const waitMs = error.retryAfterMs ?? 0;
  if (waitMs > policy.longestWaitMs) return { type: "too_long", waitMs };
  if (tally.retries >= policy.retriesBeforeOutput) return { type: "exhausted" };
  if (error.kind === "timeout" && tally.retriesAfterTimeout >= policy.retriesAfterTimeout) return { type: "exhausted" };
  if (tookMs > policy.retryWithinMs) return { type: "exhausted" };
  if (output && tally.retriesAfterOutput >= policy.retriesAfterOutput) return { type: "exhausted" };
  return { type: "retry", delayMs: pause({ error, retry: tally.retries, policy, random }) };
}

/** Kinds of failure that may be temporary. */
const temporary: ReadonlySet<ModelErrorKind> = new Set(["rate_limit", "server", "network", "timeout", "protocol"]);

/** Returns the pause before retry number `retry`, counted from 0. */
export function pause(options: {
  readonly error: ModelError;
  readonly retry: number;
  readonly policy: RetryPolicy;
  readonly random: () => number;
}): number {
  const { error, retry, policy, random } = options;
  const asked = error.retryAfterMs;
  if (error.kind === "rate_limit" && asked === undefined) {
    const extra = Math.min(policy.capMs, policy.rateLimitExtraMs * 2 ** retry);
    return Math.round(policy.rateLimitBaseMs + extra + random() * policy.rateLimitExtraMs);
  }
  const backoff = Math.round(random() * Math.min(policy.capMs, policy.baseMs * 2 ** retry));
  if (asked === undefined) return backoff;
  // Adds a few per cent to the provider's time, so that other processes with the same key do not retry at the same
  // instant.
  return Math.max(backoff, Math.ceil(asked) + Math.ceil(asked * 0.05 * random()));
}

function explain(options: {
  readonly error: ModelError;
  readonly decision: Exclude<RetryDecision, { type: "retry" }>;
  readonly requests: number;
  readonly stamp: Stamp;
}): ModelError {
  const { error, decision, requests, stamp } = options;
  if (decision.type === "permanent" && requests === 1) return error;
  if (decision.type === "too_long") {
    const seconds = Math.ceil(decision.waitMs / 1_000);
    return withMessage(
      error,
      `${error.message} (asked us to wait ${seconds} s, after ${plural(requests, "attempt")})`,
      {
        hint: `Try again after ${clockTime(stamp.now() + decision.waitMs)}, or choose another model.`,
      },
    );
  }
  return withMessage(error, `${error.message} (gave up after ${plural(requests, "attempt")})`, {
    hint: error.hint ?? hints[error.kind],
  });
}

const hints: Partial<Record<ModelErrorKind, string>> = {
  rate_limit: "The provider is limiting requests. Wait a little, run fewer agents at once, or choose another model.",
  server: "The provider has an internal problem. Try again later or choose another model.",
  network: "Check the network connection and the base URL of the provider.",
  timeout: "The provider did not answer in time. Try again, or choose another model.",
  protocol: "Check that the base URL and the wire API match what the server speaks.",
};

function withMessage(error: ModelError, message: string, changes: { hint: string | undefined }): ModelError {
  return new ModelError(message, {
    kind: error.kind,
    provider: error.provider,
    cause: error,
    ...(error.statusCode === undefined ? {} : { statusCode: error.statusCode }),
    ...(error.code === undefined ? {} : { code: error.code }),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.retryable === undefined ? {} : { retryable: error.retryable }),
    ...(changes.hint === undefined ? {} : { hint: changes.hint }),
  });
}

/** The latest time that is shown: later than any plausible wait, but still a valid date. */
const FARTHEST_MS = 4_102_444_800_000;

function clockTime(milliseconds: number): string {
  return `${new Date(Math.min(milliseconds, FARTHEST_MS)).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function failure(error: ModelError, usage?: Usage): ModelEnd {
  return { type: "end", stop: "error", error, ...defined({ usage }) };
}
