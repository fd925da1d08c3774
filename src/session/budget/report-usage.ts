import { defined } from "../../lib/defined.ts";
import type { ModelCall } from "../../loop/run.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { SessionModel } from "../session-model.ts";

/** Reports the usage of a model call to listeners and to the log, which keeps the totals. */
export async function reportUsage(call: ModelCall, model: SessionModel, emit: Emit): Promise<void> {
  const { turnId, usage, durationMs, requests, estimated, timeToFirstTokenMs, finishReason } = call;
  const { webSearches: _, ...tokens } = usage;
  void emit("assistant.usage", {
    model: model.model,
    ...tokens,
    duration: Math.round(durationMs),
    ...(timeToFirstTokenMs !== undefined && { timeToFirstTokenMs: Math.round(timeToFirstTokenMs) }),
    finishReason: finishReasons.get(finishReason) ?? finishReason,
    ...requestFacts(call, model),
    ...model.route,
  });
  // Not awaited: the reply that follows it in the log is.
  void emit("troupe.usage", {
    turnId,
    provider: model.providerId,
    model: model.model,
    ...usage,
    costUsd: model.costOf(usage),
    durationMs: Math.round(durationMs),
    attempts: requests,
    ...(estimated && { estimated }),
  });
}

/** Clients expect the finish reasons of the chat completions wire. */
const finishReasons: ReadonlyMap<string, string> = new Map([
  ["done", "stop"],
  ["tools", "tool_calls"],
]);

function requestFacts(
  { request, usage, durationMs, timeToFirstTokenMs }: ModelCall,
  model: SessionModel,
): Partial<EventData<"assistant.usage">> {
  if (!request) return {};
  const { stream, maxOutputTokens, reasoningEffort, reasoningSummary, origin } = request;
  const first = stream ? timeToFirstTokenMs : undefined;
  const steps = usage.outputTokens - 1;
  return {
    ...(first !== undefined && { outputTtftMs: Math.round(first) }),
    ...(first !== undefined && steps > 0 && { interTokenLatencyMs: Math.round((durationMs - first) / steps) }),
    ...defined({
      maxOutputTokens,
      maxPromptTokens: model.contextWindow,
      reasoningEffort,
      reasoningSummary,
      interactionType: origin?.interactionType,
    }),
    ...(origin?.interactionType === "conversation-subagent" && { initiator: "sub-agent" }),
  };
}
