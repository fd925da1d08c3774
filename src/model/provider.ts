/**
 * The port to every model. A provider is a wire (the protocol) at a base URL with a key. The understudy, the faux model
 * and the user's packages implement the same interface, so callers cannot tell them apart. This folder has the
 * providers, their settings, the wires, and what is shared by all calls: retries, limits, prices.
 */
import type { Json } from "../lib/json.ts";
import type { Citations } from "../protocol/citations.ts";
import type { Message, Reasoning, ToolCall } from "../protocol/message.ts";
import { ModelError } from "./model-error.ts";

export interface ModelRequest {
  /** The provider's name for the model. */
  readonly model: string;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  /** Requests a stream from the wire. Callers get the same events either way. */
  readonly stream: boolean;
  readonly maxOutputTokens?: number;
  readonly reasoningEffort?: ReasoningEffort;
  /** How much of its reasoning a model summarises (default: the wire's). */
  readonly reasoningSummary?: ReasoningSummary;
  /** The same for all calls of one conversation, so that the provider can reuse its prompt cache. */
  readonly cacheKey?: string;
  /** Counts the requests that are sent for this call. Not sent over the wire. */
  readonly sent?: SentRequests;
  /** Resolves when the wire may send another request for this call. Not sent over the wire. */
  readonly beforeResending?: () => Promise<void>;
  /** The calling agent, if it is not the main agent. Not sent over the wire. */
  readonly agent?: { readonly id: string; readonly name: string };
  /** Requests citations of the documents that the reply uses, if the wire supports them. */
  readonly citations?: boolean;
  /**
   * Lets the provider search the web before it replies, and cite the results. Only for models with a `searchAddress`:
   * other providers refuse the request or ignore this.
   */
  readonly webSearch?: { readonly maxSearches: number };
  /** The format of the reply's text (default: free text). */
  readonly responseFormat?: ResponseFormat;
  /** Headers for this request only, in addition to the provider's. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the client that carries the request instead of the network. Not sent over the wire. */
  readonly origin?: RequestOrigin;
  /** `low`: when requests wait for each other, all others go first. Not sent over the wire. */
  readonly priority?: "low";
}

export type ReasoningEffort = "low" | "medium" | "high" | "xhigh" | "max";
export type ReasoningSummary = "none" | "concise" | "detailed";

/**
 * Structured output. Each wire uses its own parameter for it. If the model or server has none, the schema becomes part
 * of the instructions. Neither the schema nor the reply is validated or changed: the caller must validate the reply.
 */
export type ResponseFormat =
  | { readonly type: "json_object" }
  | { readonly type: "json_schema"; readonly jsonSchema: JsonSchemaFormat };

interface JsonSchemaFormat {
  readonly name: string;
  /** JSON schema of the reply. */
  readonly schema: Json;
  readonly description?: string;
  /** OpenAI only: refuse schemas that cannot be enforced. If absent, the provider's default applies. */
  readonly strict?: boolean;
}

/**
 * Number of requests that one model call sends to its provider. The caller creates it with 1. Code that sends more or
 * fewer requests corrects the number: `withRetry`, `afterOverflow`, wires.
 */
export interface SentRequests {
  requests: number;
}

/** Corrects the number of sent requests if the caller counts them. */
export function countSent({ sent }: Pick<ModelRequest, "sent">, requests: 1 | -1): void {
  if (sent) sent.requests += requests;
}

/** The origin of a request. */
export interface RequestOrigin {
  readonly sessionId: string;
  /** For the main agent, the id of its session. */
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
  /** Number of web searches that the provider made for the reply. */
  readonly webSearches?: number;
}

export type StopReason = "done" | "tools" | "length" | "aborted" | "error";

export type ModelEvent =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "reasoning"; readonly delta: string }
  /** Argument text as it arrives, for display. The complete call follows as `call`. */
  | { readonly type: "call_delta"; readonly toolCallId: string; readonly name: string; readonly delta: string }
  | { readonly type: "call"; readonly call: ToolCall }
  /**
   * The attempt failed and another follows after `delayMs`. Everything since the last `retry` (or the start) is void:
   * consumers must discard collected text and calls.
   */
  | { readonly type: "retry"; readonly attempt: number; readonly delayMs: number; readonly error: ModelError }
  /** The request is held back before it is sent, for `delayMs` if that is known. */
  | {
      readonly type: "held";
      readonly reason: "rate_limit" | "outage" | "concurrency";
      readonly waiting: number;
      readonly delayMs?: number;
    }
  /** A notice for the user. The request continues. */
  | { readonly type: "warning"; readonly warningType: string; readonly message: string }
  | ModelEnd;

export interface ModelEnd {
  readonly type: "end";
  readonly stop: StopReason;
  readonly usage?: Usage;
  /** Must be sent back over the same wire with the next request. */
  readonly reasoning?: Reasoning;
  readonly citations?: Citations;
  /** The model's phase for its last text, such as `commentary` or `final_answer`. */
  readonly phase?: string;
  /** Present only if `stop` is "error", and always then. */
  readonly error?: ModelError;
}

export interface Provider {
  readonly id: string;
  /** Ends with exactly one `end` event and never throws: see `defineProvider`. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** Returns a provider that converts everything thrown into one `end` event. */
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
