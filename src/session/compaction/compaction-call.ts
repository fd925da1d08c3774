/**
 * One compaction: the hook, the model call, the checkpoint file and the event that applies it. Nothing changes before
 * that event.
 */

import { summaryCharacters } from "../../context/compact-message.ts";
import { summaryRequest } from "../../context/compact-request.ts";
import { type CarriedState, readSummary, type Summary } from "../../context/compact-summary.ts";
import { messageTokens } from "../../context/compact-tokens.ts";
import type { WriteSummary } from "../../context/compaction-summary.ts";
import type { CompactionTrigger } from "../../protocol/context-events.ts";
import type { EventData } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { transcriptOf } from "../transcript.ts";
import type { CompactionRun } from "./agent-context.ts";
import { outputRoom, requestSummary, type SummaryReply } from "./compaction-reply.ts";
import type { ContextMeter, ContextSize } from "./context-usage.ts";

export interface CompactionRequest {
  readonly trigger: CompactionTrigger;
  readonly focus?: string | undefined;
  /** The number of messages to summarise, from the first. */
  readonly cut: number;
  readonly usage: ContextSize;
  readonly signal: AbortSignal;
}

export type CompactionEnd =
  | ({ readonly success: true } & Pick<
      Required<EventData<"session.compaction_complete">>,
      "messagesRemoved" | "tokensRemoved" | "summaryContent" | "checkpointNumber"
    >)
  | {
      readonly success: false;
      readonly error: string;
      /** True: it was started and its failure is logged. False: nothing happened. */
      readonly started: boolean;
    };

/** Services that all compactions of a session share. */
export interface CompactionServices {
  readonly meter: ContextMeter;
  nextCheckpoint(): number;
  readonly writeSummary: WriteSummary | undefined;
  carriedState(cacheKey: string): Promise<CarriedState>;
}

/** Rejects only if the log cannot be written. After any failure the conversation is unchanged. */
export async function compactOnce(
  run: CompactionRun,
  services: CompactionServices,
  request: CompactionRequest,
): Promise<CompactionEnd> {
  const { history, emit, model } = run;
  const { usage, trigger } = request;
  const { startVersion } = history.conversation;
  const { messagesLength: _, ...tokens } = usage;
  const messages = (await history.messages()).slice(0, request.cut);
  void emit("session.compaction_start", { ...tokens, model: model.model, trigger });
  await tellHooks(run, request);
  const reply = await requestSummary(run, requestOf(messages, services.meter.factor(model), request), request.signal);
  const failed = async (error: string): Promise<CompactionEnd> => {
    await emit("session.compaction_complete", { ...endFacts(run, request, reply), success: false, error });
    return { success: false, error, started: true };
  };
  if (request.signal.aborted) return failed("It was cancelled.");
  if (!reply.ok) return failed(reply.error);
  const summary = await summaryOf(run, services, { request, text: reply.text });
  if (!summary) return failed("The model wrote no summary.");
  const stored = await storeSummary(run, services, summary);
  await history.messages(); // include messages that arrived meanwhile
  if (history.conversation.startVersion !== startVersion) return failed("The conversation was changed meanwhile.");
  const data = completeData({ run, services, request, reply, summary, stored });
  if (!data) return failed("There is nothing left to summarise.");
  await emit("session.compaction_complete", data);
  return { ...data, success: true };
}

const SHARE_OF_WINDOW = 0.9;
const LEAST_TOKENS = 1_000;

/**
 * Returns the messages to summarise, sized for a share of the window. The caller retries with half the size if the
 * request is too long.
 */
function requestOf(messages: readonly Message[], factor: number, { usage, focus }: CompactionRequest) {
  const { tokenLimit, systemTokens, toolDefinitionsTokens } = usage;
  const room = tokenLimit * SHARE_OF_WINDOW - systemTokens - toolDefinitionsTokens - outputRoom(tokenLimit);
  const sized = (share: number): readonly Message[] =>
    summaryRequest(messages, { maxTokens: Math.max(LEAST_TOKENS, (room * share) / factor), focus });
  return { tokenLimit, messages: sized };
}

/** Hooks are only notified; their results are ignored. */
async function tellHooks({ hooks, log, emit }: CompactionRun, { trigger, focus, signal }: CompactionRequest) {
  if (!hooks?.has("preCompact")) return;
  const input = {
    transcriptPath: transcriptOf(log),
    trigger: trigger === "manual" ? ("manual" as const) : ("auto" as const),
    customInstructions: focus ?? "",
  };
  await hooks.fire("preCompact", input, signal).catch((error: unknown) => {
    void emit("session.warning", { warningType: "hook", message: `A preCompact hook failed: ${String(error)}` });
  });
}

async function summaryOf(
  { redactor, cacheKey }: CompactionRun,
  services: CompactionServices,
  { request, text }: { request: CompactionRequest; text: string },
): Promise<Summary | undefined> {
  const carriedState = await services.carriedState(cacheKey).catch((): CarriedState => ({}));
  const clean = (words: string): string => redactor?.text(words) ?? words;
  const summary = readSummary(text, { carriedState, maxCharacters: summaryCharacters(request.usage.tokenLimit) });
  return summary && { title: clean(summary.title), content: clean(summary.content) };
}

/** Writes the checkpoint file. The file is optional: the summary is in the log. */
async function storeSummary({ emit }: CompactionRun, services: CompactionServices, summary: Summary) {
  const checkpointNumber = services.nextCheckpoint();
  if (!services.writeSummary) return { checkpointNumber };
  try {
    return {
      checkpointNumber,
      checkpointPath: await services.writeSummary({ number: checkpointNumber, ...summary }),
    };
  } catch (error) {
    const message = `The checkpoint could not be written to a file: ${String(error)}`;
    void emit("session.warning", { warningType: "checkpoint", message });
    return { checkpointNumber };
  }
}

interface Complete {
  readonly run: CompactionRun;
  readonly services: CompactionServices;
  readonly request: CompactionRequest;
  readonly reply: SummaryReply;
  readonly summary: Summary;
  readonly stored: { readonly checkpointNumber: number; readonly checkpointPath?: string };
}

function completeData({ run, services, request, reply, summary, stored }: Complete) {
  const { history, model, shown } = run;
  const { content: summaryContent } = summary;
  const { tokenLimit } = request.usage;
  const data = { messagesRemoved: request.cut - 1, summaryContent, tokenLimit };
  const made = history.conversation.compacted(data);
  if (!made) return undefined;
  const removed = history.sizes.slice(0, made.cut).reduce((sum, size) => sum + size, 0);
  const after = {
    tokens: history.tokens - removed + messageTokens(made.message),
    length: history.length - made.cut + 1,
  };
  const { systemTokens, toolDefinitionsTokens } = services.meter.measure({
    model,
    promptAndTools: shown,
    history: after,
  });
  const preCompactionTokens = services.meter.corrected(model, history.tokens);
  const postCompactionTokens = services.meter.corrected(model, after.tokens);
  return {
    ...endFacts(run, request, reply),
    success: true as const,
    ...data,
    messagesRemoved: made.cut - 1,
    preCompactionTokens,
    postCompactionTokens,
    preCompactionMessagesLength: history.length,
    tokensRemoved: preCompactionTokens - postCompactionTokens,
    systemTokens,
    toolDefinitionsTokens,
    conversationTokens: postCompactionTokens,
    ...stored,
  };
}

function endFacts({ model }: CompactionRun, { trigger, focus }: CompactionRequest, reply: SummaryReply) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = reply.usage;
  return {
    trigger,
    ...(focus && { customInstructions: focus }),
    ...(!reply.ok && reply.statusCode !== undefined && { statusCode: reply.statusCode }),
    compactionTokensUsed: {
      inputTokens,
      outputTokens,
      cacheReadTokens,
      cacheWriteTokens,
      duration: Math.round(reply.durationMs),
      model: model.model,
    },
  };
}
