/** One model call outside the conversation: bounded in time and size, counted in the session's budget, not stored. */
import { estimateTokens } from "../../lib/tokens.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { type ModelEnd, noUsage, type SentRequests } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Message } from "../../protocol/message.ts";
import type { Tool } from "../../tools/tool.ts";
import { reportUsage } from "../budget/report-usage.ts";
import { requestOrigin } from "../requests/request-origin.ts";
import type { Session } from "../session.ts";
import { expectedCall } from "./expected-call.ts";

export interface SingleCall {
  /** Names the call in `troupe.usage`. */
  readonly turnId: string;
  readonly system: string;
  readonly tools: readonly Tool[];
  readonly messages: readonly Message[];
  readonly maxOutputTokens?: number;
}

export interface SingleReply {
  /** Redacted like the session's events. */
  readonly text: string;
  readonly stop: "done" | "length" | "tools";
}

const MAX_MS = 5 * 60_000;
const MAX_CHARACTERS = 1024 * 1024;

/** Throws a `TroupeError` if a limit is reached or there is no answer, and passes on the provider's `ModelError`. */
export async function callModelOnce(session: Session, call: SingleCall, signal: AbortSignal): Promise<SingleReply> {
  const { model, limits } = session.mainAgent;
  const { budget, stamp, redactor } = session.record;
  const characters = call.messages.reduce((sum, message) => sum + JSON.stringify(message.content).length, 0);
  const expected = expectedCall({ model, system: call.system, tools: call.tools, characters });
  const reservation = session.requests.newRequestId();
  const limit = budget.reserve(reservation, { limits }, expected);
  if (limit) throw new TroupeError("limit", limit.message);
  const began = stamp.monotonic();
  try {
    const ended = AbortSignal.any([signal, session.queue.closed, AbortSignal.timeout(MAX_MS)]);
    const sent = { requests: 1 };
    const { text, end } = await listen(session, { ...call, sent }, ended);
    const isCounted = (end.usage?.inputTokens ?? 0) > 0;
    const usage = isCounted && end.usage ? end.usage : { ...noUsage, outputTokens: estimateTokens(text) };
    if (sent.requests > 0) {
      const counted = { usage, estimated: !isCounted, requests: sent.requests };
      const facts = { turnId: call.turnId, ...counted, finishReason: end.stop };
      const times = { durationMs: stamp.monotonic() - began, timeToFirstTokenMs: undefined };
      await reportUsage({ ...facts, ...times }, model, session.record.emit);
    }
    if (end.stop === "aborted") throw new TroupeError("failed", "The question was cancelled before it was answered.");
    if (end.stop === "error") throw end.error ?? new TroupeError("provider", "The model gave no answer.");
    if (text.trim() === "") throw new TroupeError("provider", "The model gave no answer text.");
    return { text: redactor?.text(text) ?? text, stop: end.stop };
  } finally {
    budget.release(reservation);
  }
}

interface StreamedReply {
  text: string;
  end: ModelEnd;
}

function listen(
  { id, mainAgent }: Session,
  call: SingleCall & { readonly sent: SentRequests },
  signal: AbortSignal,
): Promise<StreamedReply> {
  const { model } = mainAgent;
  const { system, tools, messages, sent } = call;
  const reply: StreamedReply = { text: "", end: { type: "end", stop: "error" } };
  const most = Math.min(
    call.maxOutputTokens ?? Number.POSITIVE_INFINITY,
    model.maxOutputTokens ?? Number.POSITIVE_INFINITY,
  );
  const request = {
    model: model.model,
    system,
    tools,
    messages,
    sent,
    cacheKey: id,
    origin: requestOrigin(id),
    stream: mainAgent.isStreamed,
    ...(Number.isFinite(most) && { maxOutputTokens: most }),
  };
  const listening = async (): Promise<StreamedReply> => {
    for await (const event of model.provider.stream(request, signal)) {
      if (event.type === "text") reply.text = (reply.text + event.delta).slice(0, MAX_CHARACTERS);
      if (event.type === "end") reply.end = event;
      if (event.type === "retry") reply.text = "";
    }
    return reply;
  };
  return untilAborted(listening(), signal, () => ({ ...reply, end: { type: "end", stop: "aborted" } }));
}
