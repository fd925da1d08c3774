import { defined } from "../lib/defined.ts";
import type { ModelError } from "../model/model-error.ts";
import type { ModelSelection } from "./model-selection.ts";
import type { Broker } from "./requests/broker.ts";

/** The cause that `session.model_change` reports. */
const CAUSE = "rate_limit_auto_switch";

/**
 * Offers another model if the user's account has reached a limit for the current one. Asks the user, unless they chose
 * "always" before. `offer` returns true if the model was switched.
 */
export class ModelSwitch {
  #isAlways = false;

  async offer(
    error: ModelError,
    ports: { modelSelection: ModelSelection | undefined; broker: Broker; signal: AbortSignal },
  ): Promise<boolean> {
    const { modelSelection, broker, signal } = ports;
    const instead = modelSelection?.insteadOf(error);
    if (!modelSelection || instead === undefined) return false;
    if (!this.#isAlways) {
      const { code, retryAfterMs } = error;
      const answer = await broker.request(
        "auto_mode_switch",
        {
          ...defined({ errorCode: code }),
          ...(retryAfterMs !== undefined && { retryAfterSeconds: Math.ceil(retryAfterMs / 1000) }),
        },
        { signal },
      );
      if (typeof answer === "string" || answer.response === "no") return false;
      this.#isAlways = answer.response === "yes_always";
    }
    await modelSelection.select(instead, { cause: CAUSE, source: "automatic" });
    return true;
  }
}
