import type { ModelError } from "../model/model-error.ts";
import { type ModelEnd, type ModelRequest, noUsage, type Stop, type Usage } from "../model/provider.ts";
import type { EventData } from "../protocol/event.ts";
import type { Reasoning, ToolCall } from "../protocol/message.ts";
import type { Run } from "./run.ts";

export interface Reply {
  readonly turnId: string;
  readonly content: string;
  readonly calls: readonly ToolCall[];
  readonly stop: Stop;
  /** Present exactly when `stop` is "error". */
  readonly error?: ModelError;
}

/** One model call, from request to a stored assistant message. A retry inside it adds no turn. */
export async function askModel(run: Run, turnId: string): Promise<Reply> {
  void run.emit("assistant.turn_start", { turnId, model: run.model });
  const request: ModelRequest = {
    ...run.request,
    model: run.model,
    system: run.system,
    messages: await run.history(),
    tools: run.tools,
  };
  const started = run.stamp.monotonic();
  const heard = await listen(run, turnId, request);
  const { messageId, content, end } = heard;

  await run.spent({
    turnId,
    usage: end.usage ?? estimateUsage(request, heard),
    estimated: end.usage === undefined,
    durationMs: run.stamp.monotonic() - started,
    timeToFirstTokenMs: heard.firstAt === undefined ? undefined : heard.firstAt - started,
    attempts: heard.attempts,
    finishReason: end.stop,
  });
  if (end.stop === "error") {
    if (content !== "") {
      void run.emit("troupe.partial_message", { turnId, messageId, content, reason: end.error?.message ?? "" });
    }
    return { turnId, content, calls: [], stop: "error", ...(end.error && { error: end.error }) };
  }
  // Calls of an aborted reply may be half there: only its words are kept.
  const calls = end.stop === "aborted" ? [] : heard.calls;
  if (content !== "" || calls.length > 0 || end.stop !== "aborted") {
    const message = assistantMessage({ run, turnId, heard, calls });
    const written = run.emit("assistant.message", message);
    if (calls.length === 0) await written; // otherwise what follows it is awaited, and comes after it
  }
  return { turnId, content, calls, stop: end.stop };
}

interface Heard {
  messageId: string;
  content: string;
  reasoning: string;
  calls: ToolCall[];
  attempts: number;
  firstAt: number | undefined;
  end: ModelEnd;
}

async function listen(run: Run, turnId: string, request: ModelRequest): Promise<Heard> {
  const heard: Heard = { ...nothingYet(run), attempts: 1, end: { type: "end", stop: "error" } };
  for await (const event of run.provider.stream(request, run.signal)) {
    switch (event.type) {
      case "text":
        heard.firstAt ??= run.stamp.monotonic();
        if (run.streaming) {
          if (heard.content === "") void run.emit("assistant.message_start", { messageId: heard.messageId });
          void run.emit("assistant.message_delta", { messageId: heard.messageId, deltaContent: event.delta });
        }
        heard.content += event.delta;
        break;
      case "reasoning":
        heard.firstAt ??= run.stamp.monotonic();
        heard.reasoning += event.delta;
        if (run.streaming) {
          void run.emit("assistant.reasoning_delta", { reasoningId: heard.messageId, deltaContent: event.delta });
        }
        break;
      case "call_delta":
        heard.firstAt ??= run.stamp.monotonic();
        if (run.streaming) {
          const { toolCallId, name: toolName, delta: inputDelta } = event;
          void run.emit("assistant.tool_call_delta", { toolCallId, toolName, inputDelta });
        }
        break;
      case "call":
        heard.calls.push(event.call);
        break;
      case "retry":
        await reportRetry({ run, turnId, heard, ...event });
        Object.assign(heard, nothingYet(run), { attempts: heard.attempts + 1 });
        break;
      case "end":
        heard.end = event;
    }
  }
  if (heard.end.error) void reportFailure(run, heard.end.error);
  return heard;
}

function nothingYet(run: Run): Pick<Heard, "messageId" | "content" | "reasoning" | "calls" | "firstAt"> {
  return { messageId: run.stamp.id("message"), content: "", reasoning: "", calls: [], firstAt: undefined };
}

async function reportRetry(what: {
  run: Run;
  turnId: string;
  heard: Heard;
  attempt: number;
  delayMs: number;
  error: ModelError;
}): Promise<void> {
  const { run, turnId, heard, attempt, delayMs, error } = what;
  void reportFailure(run, error);
  void run.emit("troupe.retry", { attempt, delayMs, reason: error.message, ...status(error) });
  if (heard.content === "") return;
  const { messageId, content } = heard;
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
  heard: Heard;
  calls: readonly ToolCall[];
}): EventData<"assistant.message"> {
  const { run, turnId, heard, calls } = parts;
  const reasoning: Reasoning = { ...(heard.reasoning !== "" && { text: heard.reasoning }), ...heard.end.reasoning };
  return {
    messageId: heard.messageId,
    content: heard.content,
    toolRequests: calls.map(({ toolCallId, name, arguments: given }) => ({
      toolCallId,
      name,
      arguments: given,
      type: "function",
    })),
    turnId,
    model: run.model,
    ...(heard.end.usage && { outputTokens: heard.end.usage.outputTokens }),
    ...(reasoning.text !== undefined && { reasoningText: reasoning.text }),
    ...(reasoning.opaque !== undefined && { reasoningOpaque: reasoning.opaque }),
    ...(reasoning.wireField !== undefined && { reasoningWireField: reasoning.wireField }),
  };
}

/** About four characters a token; marked as an estimate wherever it is shown. */
function estimateUsage(request: ModelRequest, heard: Heard): Usage {
  if (heard.content === "" && heard.calls.length === 0) return noUsage;
  const sent = request.messages.reduce((sum, message) => sum + message.content.length, request.system.length);
  const received = heard.calls.reduce((sum, call) => sum + JSON.stringify(call.arguments).length, heard.content.length);
  return { ...noUsage, inputTokens: Math.ceil(sent / 4), outputTokens: Math.ceil(received / 4) };
}
