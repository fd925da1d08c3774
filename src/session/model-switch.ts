import type { ModelError } from "../model/model-error.ts";
import type { ModelSelection } from "./model-selection.ts";
import type { Broker } from "./requests/broker.ts";

/** Why the model is another one from here on, as `session.model_change` says it. */
const CAUSE = "rate_limit_auto_switch";

/**
 * A person whose account is used up for this model may go on with one that its provider chooses: asked, unless they said
 * before that they always want that. True when there is another model now.
 */
export class ModelSwitch {
  #isAlways = false;

  async offer(
    error: ModelError,
    place: { seat: ModelSelection | undefined; broker: Broker; signal: AbortSignal },
  ): Promise<boolean> {
    const { seat, broker, signal } = place;
    const instead = seat?.insteadOf(error);
    if (!seat || instead === undefined) return false;
    if (!this.#isAlways) {
      const { code, retryAfterMs } = error;
      const answer = await broker.request(
        "auto_mode_switch",
        {
          ...(code !== undefined && { errorCode: code }),
          ...(retryAfterMs !== undefined && { retryAfterSeconds: Math.ceil(retryAfterMs / 1000) }),
        },
        { signal },
      );
      if (typeof answer === "string" || answer.response === "no") return false;
      this.#isAlways = answer.response === "yes_always";
    }
    await seat.select(instead, { cause: CAUSE, source: "automatic" });
    return true;
  }
}
