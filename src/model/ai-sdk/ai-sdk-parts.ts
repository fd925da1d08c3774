/** Decodes the stream of an AI SDK language model into our events. */
import { defined } from "../../lib/defined.ts";
import { isObject, parseJson } from "../../lib/json.ts";
import type { Reasoning, ToolCall } from "../../protocol/message.ts";
import { ModelError } from "../model-error.ts";
import type { ModelEnd, ModelEvent, StopReason, Usage } from "../provider.ts";
import { limits } from "../wire/limits.ts";
import { refusedContent, reportedError } from "../wire/wire-error.ts";
import { type CallOptions, type ReasoningPart, wireFieldOf } from "./ai-sdk-encode.ts";

export interface PartReader {
  /** Decodes a part. Returns true if it shows that the model is working. Throws the error of an error part. */
  read(part: unknown): boolean;
  drain(): ModelEvent[];
  /** Throws unless the stream has finished. */
  finish(): ModelEnd;
}

/** The parts of a reply that were read so far. */
interface Reply {
  /** Used in error messages. */
  readonly endpoint: { readonly id: string; readonly baseUrl: string; headers(): Promise<Record<string, string>> };
  readonly npm: string;
  /** Tool names by the id of the call whose input is being streamed. */
  readonly inputs: Map<string, string>;
  readonly reasoning: Map<string, ReasoningPart>;
  readonly callOptions: CallOptions[];
  events: ModelEvent[];
  calls: number;
  end: ModelEnd | undefined;
}

type Part = Record<string, unknown>;

export function partReader({ id, npm }: { readonly id: string; readonly npm: string }): PartReader {
  const reply: Reply = {
    endpoint: { id, baseUrl: "", headers: async () => ({}) },
    npm,
    inputs: new Map(),
    reasoning: new Map(),
    callOptions: [],
    events: [],
    calls: 0,
    end: undefined,
  };
  return {
    read(part) {
      if (!isObject(part) || typeof part.type !== "string") return false;
      const reader = Object.hasOwn(readers, part.type) ? readers[part.type] : undefined;
      reader?.(reply, part);
      return reader !== undefined;
    },
    drain() {
      const ready = reply.events;
      reply.events = [];
      return ready;
    },
    finish() {
      if (reply.end === undefined) throw ModelError.incomplete(id);
      return reply.end;
    },
  };
}

const readers: Readonly<Record<string, (reply: Reply, part: Part) => void>> = {
  "text-delta": ({ events }, part) => void events.push({ type: "text", delta: text(part.delta) }),
  "reasoning-start": addReasoning,
  "reasoning-delta": (reply, part) => {
    addReasoning(reply, part);
    reply.events.push({ type: "reasoning", delta: text(part.delta) });
  },
  "reasoning-end": addReasoning,
  "tool-input-start": ({ inputs }, part) => void inputs.set(text(part.id), text(part.toolName)),
  "tool-input-delta": ({ inputs, events }, part) => {
    const toolCallId = text(part.id);
    events.push({ type: "call_delta", toolCallId, name: inputs.get(toolCallId) ?? "", delta: text(part.delta) });
  },
  "tool-call": addCall,
  error: ({ endpoint }, { error }) => {
    throw isObject(error) && typeof error.statusCode === "number" ? error : reportedError(endpoint, readable(error));
  },
  finish: (reply, part) => {
    reply.end = endOf(reply, part);
  },
};

function addReasoning({ reasoning, endpoint }: Reply, part: Part): void {
  const key = text(part.id);
  const before = reasoning.get(key);
  const options = part.providerMetadata ?? before?.providerOptions;
  const joined = (before?.text ?? "") + text(part.delta);
  if (joined.length > limits.reasoningCharacters) throw reportedError(endpoint, "the reasoning is too long");
  reasoning.set(key, {
    type: "reasoning",
    text: joined,
    ...(options === undefined ? {} : { providerOptions: options }),
  });
}

function addCall(reply: Reply, part: Part): void {
  // The provider ran this call itself. Its result is already part of the reply.
  if (part.providerExecuted === true) return;
  if (++reply.calls > limits.calls) throw reportedError(reply.endpoint, `more than ${limits.calls} calls in one reply`);
  const call = toCall(part);
  const { providerMetadata: providerOptions } = part;
  if (isObject(providerOptions)) {
    reply.callOptions.push({ type: "tool-call", toolCallId: call.toolCallId, providerOptions });
  }
  reply.events.push({ type: "call", call });
}

function endOf({ endpoint, npm, reasoning, callOptions, calls }: Reply, part: Part): ModelEnd {
  const reason = isObject(part.finishReason) ? part.finishReason.unified : part.finishReason;
  const usage = usageOf(part.usage);
  if (reason === "content-filter") {
    return { type: "end", stop: "error", error: refusedContent(endpoint), ...defined({ usage }) };
  }
  if (reason === "error") throw reportedError(endpoint, "the provider reported an error without a reason");
  const stop: StopReason = reason === "length" ? "length" : calls > 0 ? "tools" : "done";
  const parts = [...reasoning.values(), ...callOptions];
  const kept = parts.length === 0 ? undefined : reasoningOf(parts, npm);
  return {
    type: "end",
    stop,
    ...(usage === undefined ? {} : { usage }),
    ...(kept === undefined ? {} : { reasoning: kept }),
  };
}

function toCall(part: Part): ToolCall {
  const call = { toolCallId: text(part.toolCallId), name: text(part.toolName) };
  const input = typeof part.input === "string" ? part.input : JSON.stringify(part.input ?? {});
  const parsed = input.trim() === "" ? ({ ok: true, value: {} } as const) : parseJson(input);
  if (parsed.ok) return { ...call, arguments: parsed.value };
  return { ...call, arguments: {}, argumentsError: `The arguments are not JSON: ${parsed.error}` };
}

function reasoningOf(parts: readonly (ReasoningPart | CallOptions)[], npm: string): Reasoning {
  const text = parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  return { ...(text && { text }), opaque: JSON.stringify(parts), wireField: wireFieldOf(npm) };
}

/** Decodes usage: plain numbers in version 2, a breakdown in version 3. */
function usageOf(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const { inputTokens: input, outputTokens: output } = usage;
  if (isObject(input) && isObject(output)) {
    return {
      inputTokens: count(input.total),
      outputTokens: count(output.total),
      cacheReadTokens: count(input.cacheRead),
      cacheWriteTokens: count(input.cacheWrite),
      reasoningTokens: count(output.reasoning),
    };
  }
  if (typeof input !== "number" && typeof output !== "number") return undefined;
  const cached = count(usage.cachedInputTokens);
  // Some packages exclude cached tokens from the total.
  const whole = count(input) >= cached ? count(input) : count(input) + cached;
  return {
    inputTokens: whole,
    outputTokens: count(output),
    cacheReadTokens: cached,
    cacheWriteTokens: 0,
    reasoningTokens: count(usage.reasoningTokens),
  };
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function readable(error: unknown): unknown {
  return error instanceof Error ? { message: error.message } : error;
}
