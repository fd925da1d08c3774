import { defined } from "../../lib/defined.ts";
import type { LoopOutcome } from "../../loop/loop.ts";
import type { ModelError } from "../../model/model-error.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { ModelSelection } from "../model-selection.ts";

/** Emits the outcome of a run that did not simply finish, right before the session is idle. */
export async function conclude(
  outcome: LoopOutcome,
  { emit, modelSelection }: { emit: Emit; modelSelection: ModelSelection | undefined },
): Promise<void> {
  switch (outcome.kind) {
    case "done":
      return;
    case "aborted":
      if (outcome.isPending) return; // it is pending, not aborted
      return emit("abort", { reason: "user_initiated" });
    case "limit": {
      const { limit, ...reached } = outcome.reached;
      // No user has set this limit, so clients receive it as an error.
      if (limit === "failures") return emit("session.error", { errorType: "limit", message: reached.message });
      return emit("troupe.limit_reached", { ...reached, limit });
    }
    case "error": {
      const { message, hint, kind, code, statusCode } = outcome.error;
      return emit("session.error", {
        errorType: kind,
        message: hint ? `${message}. ${hint}` : message,
        ...defined({ errorCode: code, statusCode }),
        ...remediation(outcome.error),
        ...(modelSelection?.insteadOf(outcome.error) !== undefined && { eligibleForAutoSwitch: true }),
      });
    }
  }
}

/** Signing in again helps only with GitHub's own models: keys of other providers are in the settings. */
function remediation({ kind, provider, statusCode }: ModelError): Pick<EventData<"session.error">, "remediation"> {
  if (kind !== "authentication" || provider !== "github") return {};
  return { remediation: statusCode === 403 ? "switch_account" : "sign_in" };
}
