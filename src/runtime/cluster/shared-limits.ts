/** Connects the limiter of model requests with the rates that all workers share. */

import { GateShut, type RateRight, type RateWait, type SharedRates } from "../../engine/shared-rates.ts";
import type { LimiterWait, Pass } from "../../model/limiter.ts";
import { ModelError } from "../../model/model-error.ts";
import type { SharedLimits } from "../../model/shared-limits.ts";

/** A limit of `provider/model` replaces one of `provider` for this model. */
export function sharedLimitsOf(rates: Pick<SharedRates, "enter">): SharedLimits {
  return {
    of: (providerId, model) => ({
      async enter(signal, onWait) {
        const names = [`${providerId}/${model}`, providerId];
        try {
          return passOf(await rates.enter(names, signal, onWait && ((wait) => onWait(waitOf(wait)))));
        } catch (error) {
          throw error instanceof GateShut ? gateShut(error, providerId) : error;
        }
      },
    }),
  };
}

function passOf(right: RateRight): Pass {
  return {
    accepted: () => right.accepted(),
    failed: (error, delayMs) => {
      if (error.kind === "rate_limit") right.refused(delayMs);
    },
    release: () => right.release(),
  };
}

const waitOf = ({ reason, delayMs, waiting }: RateWait): LimiterWait => ({
  reason: reason === "concurrency" ? "concurrency" : "rate_limit",
  delayMs,
  waiting,
});

const gateShut = ({ message, waitMs }: GateShut, provider: string): ModelError =>
  new ModelError(message, {
    kind: "rate_limit",
    provider,
    retryAfterMs: waitMs,
    retryable: false,
    hint: 'Wait, or lower the shared rate: "troupe cluster limit set".',
  });
