import type { LoopOutcome } from "../../loop/loop.ts";
import type { Run } from "../../loop/run.ts";
import type { Emit } from "../../protocol/event.ts";
import type { BoundHooks } from "./hooked-calls.ts";
import { HOOK_SOURCE } from "./hooked-prompt.ts";

/** The number of times hooks may block the agent from stopping, per message. */
const MAX_BLOCKS = 8;

/** Runs the hooks when the agent would stop. The reason of a block becomes the next message. */
export function hookedStop(parts: {
  hooks: BoundHooks | undefined;
  emit: Emit;
  signal: AbortSignal;
  transcriptPath: string;
}): Run["beforeStopping"] {
  const { hooks, emit, signal, transcriptPath } = parts;
  if (!hooks?.has("agentStop")) return async () => "stop";
  let blocks = 0;
  return async () => {
    const input = { transcriptPath, stopReason: "end_turn", stop_hook_active: blocks > 0 } as const;
    const { decision, reason } = await hooks.fire("agentStop", input, signal);
    if (decision !== "block" || signal.aborted) return "stop";
    blocks++;
    if (blocks > MAX_BLOCKS) {
      const message = `An agentStop hook refused ${MAX_BLOCKS} times to let the agent stop; it is not heard any more.`;
      void emit("session.warning", { warningType: "hook", message });
      return "stop";
    }
    await emit("user.message", {
      content: reason ?? "Go on: the work is not finished.",
      source: `${HOOK_SOURCE}agentStop`,
    });
    return "continue";
  };
}

const MAX_RETRIES = 5;

/** Notifies hooks of a model call that has finally failed. Returns true if one wants it retried and may. */
export async function isRetried(
  outcome: LoopOutcome,
  context: { hooks: BoundHooks | undefined; emit: Emit; signal: AbortSignal; retries: number },
): Promise<boolean> {
  const { hooks, emit, signal, retries } = context;
  if (outcome.kind !== "error" || !hooks?.has("errorOccurred") || signal.aborted) return false;
  const { name, message } = outcome.error;
  const input = { error: { name, message }, errorContext: "model_call", recoverable: false } as const;
  const hookOutput = await hooks.fire("errorOccurred", input, signal);
  if (hookOutput.userNotification) {
    void emit("session.info", { infoType: "hook", message: hookOutput.userNotification });
  }
  const allowed = Math.min(hookOutput.retryCount ?? 1, MAX_RETRIES);
  return hookOutput.errorHandling === "retry" && retries < allowed && !signal.aborted;
}

/** Returns the input of the `sessionEnd` hooks. */
export function endReason(outcome: LoopOutcome | { kind: "failed"; error: Error } | undefined): {
  reason: "complete" | "error" | "abort" | "user_exit";
  finalMessage?: string;
  error?: string;
} {
  switch (outcome?.kind) {
    case undefined:
      return { reason: "user_exit" };
    case "done":
      return { reason: "complete", finalMessage: outcome.answer };
    case "aborted":
      return { reason: "abort" };
    case "limit":
      return { reason: "error", error: outcome.reached.message };
    case "error":
    case "failed":
      return { reason: "error", error: outcome.error.message };
  }
}
