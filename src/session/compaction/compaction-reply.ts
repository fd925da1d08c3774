/** The model call that writes a summary. Its text is not an answer: it is collected, counted and returned. */

import { messageTokens } from "../../context/compact-tokens.ts";
import { defined } from "../../lib/defined.ts";
import { estimateTokens } from "../../lib/tokens.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { ModelError } from "../../model/model-error.ts";
import { type ModelEnd, noUsage, type SentRequests, type Usage } from "../../model/provider.ts";
import type { Message } from "../../protocol/message.ts";
import { reportUsage } from "../budget/report-usage.ts";
import { isStreamed } from "../session-model.ts";
import type { CompactionRun } from "./agent-context.ts";

export type SummaryReply = {
  readonly usage: Usage;
  readonly durationMs: number;
} & (
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly error: string; readonly statusCode?: number }
);

interface SummaryRequest {
  readonly tokenLimit: number;
  /** Returns the messages to summarise, fitted into a share of the available room. */
  messages(share: number): readonly Message[];
}

const MAX_OUTPUT_TOKENS = 16_384;
const OUTPUT_SHARE = 0.15;
const MAX_MS = 10 * 60_000;
const MAX_CHARACTERS = 1024 * 1024;

/** Returns the number of tokens reserved for the summary itself. */
export function outputRoom(tokenLimit: number): number {
  return Math.min(MAX_OUTPUT_TOKENS, Math.floor(tokenLimit * OUTPUT_SHARE));
}

export async function requestSummary(
  run: CompactionRun,
  request: SummaryRequest,
  signal: AbortSignal,
): Promise<SummaryReply> {
  const whole = await ask(run, { messages: request.messages(1), tokenLimit: request.tokenLimit }, signal);
  if (whole.ok || whole.kind !== "context_length" || signal.aborted) return whole;
  return ask(run, { messages: request.messages(0.5), tokenLimit: request.tokenLimit }, signal);
}

async function ask(
  run: CompactionRun,
  request: { readonly messages: readonly Message[]; readonly tokenLimit: number },
  signal: AbortSignal,
): Promise<SummaryReply & { readonly kind?: ModelError["kind"] }> {
  const { stamp, model, emit } = run;
  const began = stamp.monotonic();
  const sent = { requests: 1 };
  const ended = AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)]);
  const { text, end } = await listen(run, { ...request, sent }, ended);
  const durationMs = stamp.monotonic() - began;
  const isCounted = (end.usage?.inputTokens ?? 0) > 0;
  const estimate = {
    ...noUsage,
    inputTokens: inputTokens(run, request.messages),
    outputTokens: estimateTokens(text),
  };
  const usage = isCounted && end.usage ? end.usage : text === "" ? noUsage : estimate;
  const finishReason = end.stop;
  const call = {
    turnId: "compaction",
    usage,
    estimated: !isCounted,
    durationMs,
    requests: sent.requests,
    finishReason,
  };
  if (sent.requests > 0) await reportUsage({ ...call, timeToFirstTokenMs: undefined }, model, emit);
  if (end.stop !== "error" && end.stop !== "aborted") return { ok: true, text, usage, durationMs };
  const { error } = end;
  const message = error?.message ?? (signal.aborted ? "It was cancelled." : "The summary took too long.");
  const { statusCode, kind } = error ?? {};
  return {
    ok: false,
    error: message,
    usage,
    durationMs,
    ...defined({ statusCode, kind }),
  };
}

interface StreamedReply {
  text: string;
  end: ModelEnd;
}

function listen(
  run: CompactionRun,
  { messages, tokenLimit, sent }: { messages: readonly Message[]; tokenLimit: number; sent: SentRequests },
  signal: AbortSignal,
): Promise<StreamedReply> {
  const { model, shown, cacheKey, emit } = run;
  const reply: StreamedReply = { text: "", end: { type: "end", stop: "error" } };
  const room = outputRoom(tokenLimit);
  const request = {
    model: model.model,
    system: shown.system,
    tools: shown.tools,
    messages,
    sent,
    cacheKey,
    stream: isStreamed(run),
    origin: { ...run.origin, interactionType: "conversation-compaction" as const },
    maxOutputTokens: Math.min(model.maxOutputTokens ?? room, room),
  };
  const listening = async (): Promise<StreamedReply> => {
    for await (const event of model.provider.stream(request, signal)) {
      if (event.type === "text") reply.text += event.delta;
      if (event.type === "end") reply.end = event;
      if (event.type === "retry") {
        reply.text = "";
        void emit("troupe.retry", { attempt: event.attempt, delayMs: event.delayMs, reason: event.error.message });
      }
      if (reply.text.length > MAX_CHARACTERS) {
        const error = new ModelError("The summary is far too long.", { kind: "protocol", provider: model.providerId });
        return { ...reply, end: { type: "end", stop: "error", error } };
      }
    }
    return reply;
  };
  return untilAborted(listening(), signal, () => ({ ...reply, end: { type: "end", stop: "aborted" } }));
}

function inputTokens({ shown }: CompactionRun, messages: readonly Message[]): number {
  return estimateTokens(shown.system) + messages.reduce((sum, message) => sum + messageTokens(message), 0);
}
