import { defined } from "../lib/defined.ts";
import { ModelError } from "../model/model-error.ts";
import {
  type ModelEnd,
  type ModelEvent,
  type ModelRequest,
  noUsage,
  type StopReason,
  type Usage,
} from "../model/provider.ts";
import type { EventData } from "../protocol/event.ts";
import type { Reasoning, ToolCall } from "../protocol/message.ts";
import { fileEditTools } from "../protocol/permission.ts";
import type { Run } from "./run.ts";

export interface ModelReply {
  readonly turnId: string;
  readonly content: string;
  readonly calls: readonly ToolCall[];
  readonly stop: StopReason;
  /** Present exactly if `stop` is "error". */
  readonly error?: ModelError;
}

/** Makes one model call and stores its assistant message. Retries belong to the same turn. */
export async function askModel(run: Run, turnId: string): Promise<ModelReply> {
  const begun = run.emit("assistant.turn_start", { turnId, model: run.model });
  const sent = { requests: 1 };
  const request: ModelRequest = {
    ...run.request,
    model: run.model,
    system: run.system,
    messages: await run.history(),
    tools: run.tools,
    sent,
  };
  void run.emit("session.usage_info", run.usageInfo());
  await begun; // the log must record the turn before the request is sent
  const started = run.stamp.monotonic();
  const reply = await listen(run, turnId, request);
  const { messageId, content, end } = reply;
  const counted = countedUsage(end);
  const durationMs = run.stamp.monotonic() - started;

  await run.spent({
    turnId,
    usage: counted ?? estimateUsage(run, reply),
    estimated: counted === undefined,
    durationMs,
    timeToFirstTokenMs: reply.firstAt === undefined ? undefined : reply.firstAt - started,
    requests: sent.requests,
    finishReason: end.stop,
    request: run.request,
  });
  void run.emit("model.call_finished", {
    turnId,
    outcome: outcomes[end.stop],
    dispatchDurationMs: Math.round(durationMs - reply.pausedMs),
    editClassifierVersion: 1,
    ...(outcomes[end.stop] === "success" && {
      containsBuiltInFileEditRequest: reply.calls.some(({ name }) => fileEditTools.has(name)),
    }),
  });
  if (end.stop === "error") {
    if (content !== "") {
      void run.emit("troupe.partial_message", { turnId, messageId, content, reason: end.error?.message ?? "" });
    }
    return { turnId, content, calls: [], stop: "error", ...defined({ error: end.error }) };
  }
  // An aborted reply may contain incomplete calls: only its text is stored.
  const calls = end.stop === "aborted" ? [] : withUniqueIds(reply.calls, request);
  if (calls.length === 0) warnIfUnfinished(run, end.stop, content);
  if (content !== "" || calls.length > 0 || end.stop !== "aborted") {
    const message = assistantMessage({ run, turnId, reply, calls });
    if (reply.reasoning !== "") {
      void run.emit("assistant.reasoning", { reasoningId: messageId, content: reply.reasoning });
    }
    const written = run.emit("assistant.message", message);
    if (calls.length === 0) await written; // otherwise the events of the calls follow in order, and are awaited
  }
  return { turnId, content, calls, stop: end.stop };
}

/** The outcome that `model.call_finished` reports for each stop reason. */
const outcomes = {
  done: "success",
  tools: "success",
  length: "success",
  aborted: "cancelled",
  error: "error",
} as const;

interface StreamedReply {
  messageId: string;
  content: string;
  reasoning: string;
  calls: ToolCall[];
  firstAt: number | undefined;
  /** Time spent waiting between attempts. */
  pausedMs: number;
  end: ModelEnd;
}

/** Limit on the text of one reply. It exceeds any real answer and keeps a runaway model from filling the disk. */
const MAX_REPLY_CHARACTERS = 16 * 1024 * 1024;

async function listen(run: Run, turnId: string, request: ModelRequest): Promise<StreamedReply> {
  const reply: StreamedReply = { ...nothingYet(run), pausedMs: 0, end: { type: "end", stop: "error" } };
  const events = eventsUntilAborted(run.provider.stream(request, run.signal), run.signal);
  run.whileModelWorks?.();
  for await (const event of events) {
    if (reply.content.length + reply.reasoning.length > MAX_REPLY_CHARACTERS) {
      reply.end = { type: "end", stop: "error", error: tooLong(run.provider.id) };
      break;
    }
    switch (event.type) {
      case "text":
        reply.firstAt ??= run.stamp.monotonic();
        if (run.streaming) {
          if (reply.content === "") void run.emit("assistant.message_start", { messageId: reply.messageId });
          void run.emit("assistant.message_delta", { messageId: reply.messageId, deltaContent: event.delta });
        }
        reply.content += event.delta;
        break;
      case "reasoning":
        reply.firstAt ??= run.stamp.monotonic();
        reply.reasoning += event.delta;
        if (run.streaming) {
          void run.emit("assistant.reasoning_delta", { reasoningId: reply.messageId, deltaContent: event.delta });
        }
        break;
      case "call_delta":
        reply.firstAt ??= run.stamp.monotonic();
        if (run.streaming) {
          const { toolCallId, name: toolName, delta: inputDelta } = event;
          void run.emit("assistant.tool_call_delta", { toolCallId, toolName, inputDelta });
        }
        break;
      case "call":
        reply.calls.push(event.call);
        break;
      case "retry":
        await reportRetry({ run, turnId, reply, ...event });
        reply.pausedMs += event.delayMs;
        Object.assign(reply, nothingYet(run));
        break;
      case "held": {
        const { type: _, ...wait } = event;
        void run.emit("troupe.model_wait", wait);
        break;
      }
      case "warning":
        void run.emit("session.warning", { warningType: event.warningType, message: event.message });
        break;
      case "end":
        reply.end = event;
    }
  }
  if (reply.end.error) void reportFailure(run, reply.end.error);
  return reply;
}

/** Time after which a provider that ignores an abort is abandoned. */
const ABORT_GRACE_MS = 2_000;

async function* eventsUntilAborted(events: AsyncIterable<ModelEvent>, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  const iterator = events[Symbol.asyncIterator]();
  let giveUp: (result: IteratorResult<ModelEvent>) => void = () => undefined;
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    const aborted: IteratorResult<ModelEvent> = { done: false, value: { type: "end", stop: "aborted" } };
    timer = setTimeout(() => giveUp(aborted), ABORT_GRACE_MS);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const { done, value } = await new Promise<IteratorResult<ModelEvent>>((resolve, reject) => {
        giveUp = resolve;
        iterator.next().then(resolve, reject);
      });
      if (done) return;
      yield value;
      if (value.type === "end") return;
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    iterator.return?.(undefined).catch(() => undefined);
  }
}

function tooLong(provider: string): ModelError {
  const message = `${provider}: the reply is longer than ${MAX_REPLY_CHARACTERS / 1024 / 1024} MiB of text and was cut off`;
  return new ModelError(message, { kind: "protocol", provider, retryable: false });
}

/** Results refer to calls by id, so every id must be present and unique within the conversation. */
function withUniqueIds(calls: readonly ToolCall[], request: ModelRequest): readonly ToolCall[] {
  const isClean = new Set(calls.map(({ toolCallId }) => toolCallId)).size === calls.length;
  if (isClean && calls.every(({ toolCallId }) => toolCallId !== "")) return calls;
  const used = new Set<string>();
  for (const message of request.messages) if (message.role === "tool") used.add(message.toolCallId);
  return calls.map((call) => {
    let toolCallId = call.toolCallId || "call";
    for (let number = 2; used.has(toolCallId); number++) toolCallId = `${call.toolCallId || "call"}_${number}`;
    used.add(toolCallId);
    return { ...call, toolCallId };
  });
}

/** Warns if the final reply is cut off or empty. */
function warnIfUnfinished(run: Run, stop: StopReason, content: string): void {
  if (stop !== "length" && (stop !== "done" || content !== "")) return;
  const message =
    stop === "length" ? "The reply was cut off at the model's output limit." : "The model's reply has no text.";
  void run.emit("session.warning", { warningType: stop === "length" ? "output_limit" : "empty_reply", message });
}

function nothingYet(run: Run): Pick<StreamedReply, "messageId" | "content" | "reasoning" | "calls" | "firstAt"> {
  return { messageId: run.stamp.id("message"), content: "", reasoning: "", calls: [], firstAt: undefined };
}

async function reportRetry(retry: {
  run: Run;
  turnId: string;
  reply: StreamedReply;
  attempt: number;
  delayMs: number;
  error: ModelError;
}): Promise<void> {
  const { run, turnId, reply, attempt, delayMs, error } = retry;
  void reportFailure(run, error);
  void run.emit("troupe.retry", { attempt, delayMs, reason: error.message, ...status(error) });
  if (reply.content === "") return;
  const { messageId, content } = reply;
  await run.emit("troupe.partial_message", { turnId, messageId, content, reason: error.message });
}

function reportFailure(run: Run, error: ModelError): Promise<void> {
  return run.emit("model.call_failure", {
    source: run.source,
    model: run.model,
    errorType: error.kind,
    errorMessage: error.message,
    ...status(error),
  });
}

const status = (error: ModelError): { statusCode?: number } =>
  error.statusCode === undefined ? {} : { statusCode: error.statusCode };

function assistantMessage(parts: {
  run: Run;
  turnId: string;
  reply: StreamedReply;
  calls: readonly ToolCall[];
}): EventData<"assistant.message"> {
  const { run, turnId, reply, calls } = parts;
  const usage = countedUsage(reply.end);
  const reasoning: Reasoning = { ...(reply.reasoning !== "" && { text: reply.reasoning }), ...reply.end.reasoning };
  return {
    messageId: reply.messageId,
    content: reply.content,
    toolRequests: calls.map(({ toolCallId, name, arguments: given }) => ({
      toolCallId,
      name,
      arguments: given,
      type: "function",
    })),
    turnId,
    model: run.model,
    ...defined({ originatingMessageId: run.originatingMessageId, outputTokens: usage?.outputTokens }),
    ...(reply.end.phase && { phase: reply.end.phase }),
    ...defined({
      citations: reply.end.citations,
      reasoningText: reasoning.text,
      reasoningOpaque: reasoning.opaque,
      reasoningWireField: reasoning.wireField,
    }),
  };
}

/** Returns undefined if the server reports only zeros: some servers do not count tokens. */
function countedUsage({ usage }: ModelEnd): Usage | undefined {
  return usage && usage.inputTokens + usage.outputTokens > 0 ? usage : undefined;
}

/** Estimates four characters per token. Marked as an estimate wherever it is displayed. */
function estimateUsage(run: Run, reply: StreamedReply): Usage {
  if (reply.content === "" && reply.calls.length === 0) return noUsage;
  const received = reply.calls.reduce((sum, call) => sum + JSON.stringify(call.arguments).length, reply.content.length);
  return { ...noUsage, inputTokens: run.usageInfo().currentTokens, outputTokens: Math.ceil(received / 4) };
}
