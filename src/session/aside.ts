/** A question beside the conversation: the model sees what was said so far, and nothing of the question is kept. */
import { estimateTokens } from "../lib/tokens.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { type ModelEnd, noUsage } from "../model/provider.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Message } from "../protocol/message.ts";
import { reportUsage } from "./report-usage.ts";
import { originOf } from "./request-origin.ts";
import type { Session } from "./session.ts";
import { isStreamed } from "./start-run.ts";

const MAX_MS = 5 * 60_000;
const MAX_CHARACTERS = 1024 * 1024;

/** One model call, counted like any other. Throws a `TroupeError` when there is no answer. */
export async function askAside(session: Session, question: string, signal: AbortSignal): Promise<string> {
  const { settings } = session;
  const limit = session.budget.reached(settings.limits ?? {});
  if (limit) throw new TroupeError("limit", limit.message);
  await settings.offer.ready?.(signal);
  const messages = settled((await session.context?.messages()) ?? []);
  const began = settings.stamp.monotonic();
  const ended = AbortSignal.any([signal, session.end.signal, AbortSignal.timeout(MAX_MS)]);
  const heard = await listen(session, [...messages, { role: "user", content: question }], ended);
  const { text, end, attempts } = heard;
  const isCounted = (end.usage?.inputTokens ?? 0) > 0;
  const usage = isCounted && end.usage ? end.usage : { ...noUsage, outputTokens: estimateTokens(text) };
  const call = { turnId: "aside", usage, estimated: !isCounted, attempts, finishReason: end.stop };
  const durationMs = settings.stamp.monotonic() - began;
  if (isCounted || text !== "") {
    await reportUsage({ ...call, durationMs, timeToFirstTokenMs: undefined }, settings.model, session.say);
  }
  if (end.stop === "aborted") throw new TroupeError("failed", "The question was given up before it was answered.");
  if (end.stop === "error") throw end.error ?? new TroupeError("provider", "The model gave no answer.");
  if (text.trim() === "") throw new TroupeError("provider", "The model answered without words.");
  return settings.redactor?.text(text) ?? text;
}

interface Heard {
  text: string;
  attempts: number;
  end: ModelEnd;
}

function listen({ id, settings }: Session, messages: readonly Message[], signal: AbortSignal): Promise<Heard> {
  const { model, offer } = settings;
  const heard: Heard = { text: "", attempts: 1, end: { type: "end", stop: "error" } };
  const request = {
    // The tools stand there for the calls in the history, and so that a provider finds the same beginning again.
    ...{ model: model.model, system: offer.system, tools: offer.tools, messages, cacheKey: id, origin: originOf(id) },
    stream: isStreamed(settings),
    ...(model.maxOutputTokens !== undefined && { maxOutputTokens: model.maxOutputTokens }),
  };
  const listening = async (): Promise<Heard> => {
    for await (const event of model.provider.stream(request, signal)) {
      if (event.type === "text") heard.text = (heard.text + event.delta).slice(0, MAX_CHARACTERS);
      if (event.type === "end") heard.end = event;
      if (event.type === "retry") {
        heard.text = "";
        heard.attempts++;
      }
    }
    return heard;
  };
  return untilAborted(listening(), signal, () => ({ ...heard, end: { type: "end", stop: "aborted" } }));
}

/** Without calls that are under way: no provider takes a call that has no result. */
function settled(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex((message) => message.role === "assistant" && message.calls.length > 0);
  const calling = messages[last];
  if (calling?.role !== "assistant") return messages;
  const answered = new Set(messages.slice(last).map((message) => (message.role === "tool" ? message.toolCallId : "")));
  return calling.calls.every(({ toolCallId }) => answered.has(toolCallId)) ? messages : messages.slice(0, last);
}
