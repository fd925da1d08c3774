import type { ModelCall } from "../loop/run.ts";
import type { Emit } from "../protocol/event.ts";
import type { SessionModel } from "./start-run.ts";

/** Says what a model call used, to those who watch and, for the totals, to the log. */
export async function reportUsage(call: ModelCall, model: SessionModel, emit: Emit): Promise<void> {
  const { turnId, usage, durationMs, attempts, estimated, timeToFirstTokenMs, finishReason } = call;
  const { webSearches: _, ...tokens } = usage;
  void emit("assistant.usage", {
    model: model.model,
    ...tokens,
    duration: Math.round(durationMs),
    ...(timeToFirstTokenMs !== undefined && { timeToFirstTokenMs: Math.round(timeToFirstTokenMs) }),
    finishReason,
  });
  // Not awaited: the reply that follows it in the log is.
  void emit("troupe.usage", {
    turnId,
    provider: model.providerId,
    model: model.model,
    ...usage,
    costUsd: model.costOf(usage),
    durationMs: Math.round(durationMs),
    attempts,
    ...(estimated && { estimated }),
  });
}
