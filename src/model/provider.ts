/**
 * The port to every model. A provider is a wire (how to speak) at a place (base URL) with a key; the understudy, the
 * faux model and packages the user installed implement the same three lines, so nothing above can tell them apart.
 */
import type { Json } from "../lib/json.ts";
import type { Citations } from "../protocol/citations.ts";
import type { Message, Reasoning, ToolCall } from "../protocol/message.ts";
import { ModelError } from "./model-error.ts";

export interface ModelRequest {
  /** The name the provider knows the model by. */
  readonly model: string;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  /** Ask the wire for a stream. Callers get the same events either way. */
  readonly stream: boolean;
  readonly maxOutputTokens?: number;
  readonly reasoningEffort?: ReasoningEffort;
  /** How much of its reasoning a model that summarises it should tell; as the wire likes unless told. */
  readonly reasoningSummary?: ReasoningSummary;
  /** Same for all calls of one conversation, so that a provider can keep its prompt cache warm. */
  readonly cacheKey?: string;
  /** Counts the requests that are sent for this call. No wire sends it. */
  readonly sent?: SentRequests;
  /** Who asks, when it is not the main agent. No wire sends it. */
  readonly agent?: { readonly id: string; readonly name: string };
  /** Ask for the places in documents that the reply rests on, where the wire can. */
  readonly citations?: boolean;
  /**
   * Lets the provider search the web itself before it answers, and cite what it found. Only for models with a
   * `searchAddress`: other providers refuse the request or ignore this.
   */
  readonly webSearch?: { readonly maxSearches: number };
  /** The form that the text of the reply must have; free text by default. */
  readonly responseFormat?: ResponseFormat;
  /** For this request alone, beside what the provider sends with each. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Told to whoever carries the request in the network's place. No wire sends it. */
  readonly origin?: RequestOrigin;
  /** `low`: where requests wait for each other, it lets all others pass. No wire sends it. */
  readonly priority?: "low";
}

export type ReasoningEffort = "low" | "medium" | "high" | "xhigh" | "max";
export type ReasoningSummary = "none" | "concise" | "detailed";

/**
 * Structured output. Each wire asks for it with its own parameter. Where the model or the server has none, the schema is
 * part of the instructions. Neither the schema nor the reply is checked or rewritten: validate the reply yourself.
 */
export type ResponseFormat =
  | { readonly type: "json_object" }
  | { readonly type: "json_schema"; readonly jsonSchema: JsonSchemaFormat };

interface JsonSchemaFormat {
  readonly name: string;
  /** JSON schema of the reply. */
  readonly schema: Json;
  readonly description?: string;
  /** OpenAI only: refuse schemas that cannot be enforced. The provider's default applies when absent. */
  readonly strict?: boolean;
}

/**
 * The number of requests that one model call sends to its provider. The caller creates it with 1. Code that sends more
 * than one request for a call, or none, corrects the number: `withRetry`, `afterOverflow`, wires.
 */
export interface SentRequests {
  requests: number;
}

/** Corrects the number of requests that were sent for a call, where its caller counts them. */
export function countSent({ sent }: Pick<ModelRequest, "sent">, requests: 1 | -1): void {
  if (sent) sent.requests += requests;
}

/** Whose request it is. */
export interface RequestOrigin {
  readonly sessionId: string;
  /** The main agent has the id of its session. */
  readonly agentId: string;
  readonly parentAgentId?: string;
  readonly interactionType: "conversation-agent" | "conversation-subagent" | "conversation-compaction";
}

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly parameters: object;
}

export interface Usage {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** Web searches that the provider made for the reply. */
  readonly webSearches?: number;
}

export type Stop = "done" | "tools" | "length" | "aborted" | "error";

export type ModelEvent =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "reasoning"; readonly delta: string }
  /** Argument text as it arrives, for those who watch. The whole call follows as `call`. */
  | { readonly type: "call_delta"; readonly toolCallId: string; readonly name: string; readonly delta: string }
  | { readonly type: "call"; readonly call: ToolCall }
  /**
   * The attempt failed and another follows after `delayMs`. What came since the last `retry` (or the start) is void:
   * whoever collects text and calls starts afresh.
   */
  | { readonly type: "retry"; readonly attempt: number; readonly delayMs: number; readonly error: ModelError }
  /** The request is held back before it is sent: `delayMs` until the next try, where that is known. */
  | {
      readonly type: "held";
      readonly reason: "rate_limit" | "outage" | "concurrency";
      readonly waiting: number;
      readonly delayMs?: number;
    }
  /** Something that the user should know about a request that goes on all the same. */
  | { readonly type: "warning"; readonly warningType: string; readonly message: string }
  | ModelEnd;

export interface ModelEnd {
  readonly type: "end";
  readonly stop: Stop;
  readonly usage?: Usage;
  /** What must go back to the same wire with the next request. */
  readonly reasoning?: Reasoning;
  readonly citations?: Citations;
  /** The phase that the model gives its words, such as `commentary` or `final_answer`; that of the last ones. */
  readonly phase?: string;
  /** Present exactly when `stop` is "error". */
  readonly error?: ModelError;
}

export interface Provider {
  readonly id: string;
  /** Ends with exactly one `end` event and never throws: see `defineProvider`. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** Lets a provider throw freely; callers still get one orderly `end`. */
export function defineProvider(provider: Provider): Provider {
  return {
    id: provider.id,
    async *stream(request, signal) {
      try {
        signal.throwIfAborted();
        for await (const event of provider.stream(request, signal)) {
          if (signal.aborted) break;
          yield event;
          if (event.type === "end") return;
        }
        if (signal.aborted) yield { type: "end", stop: "aborted" };
        else yield { type: "end", stop: "error", error: ModelError.incomplete(provider.id) };
      } catch (cause) {
        if (signal.aborted) yield { type: "end", stop: "aborted" };
        else yield { type: "end", stop: "error", error: ModelError.from(cause, provider.id) };
      }
    },
  };
}

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

export function addUsage(a: Usage, b: Usage): Usage {
  const webSearches = (a.webSearches ?? 0) + (b.webSearches ?? 0);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    ...(webSearches > 0 && { webSearches }),
  };
}
