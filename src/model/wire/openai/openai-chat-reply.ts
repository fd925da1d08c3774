import { defined } from "../../../lib/defined.ts";
import { isObject } from "../../../lib/json.ts";
import type { Reasoning } from "../../../protocol/message.ts";
import type { ModelEvent, ModelRequest, Usage } from "../../provider.ts";
import type { Endpoint } from "../endpoint.ts";
import { countOf, type PartialCall, ReplyDecoder, textOf } from "../reply.ts";
import type { Decoder } from "../wire.ts";
import { protocolError, refusedContent, reportedError } from "../wire-error.ts";
import { mergedExtra, ReasoningDetails, replayReasoning } from "./openai-chat-replay.ts";
import { citationLimits, OpenaiCitations } from "./openai-citations.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Field names that servers use for reasoning. It is sent back under the same name. */
const reasoningFields = ["reasoning_content", "reasoning", "reasoning_text"] as const;
type ReasoningField = (typeof reasoningFields)[number];

export function isReasoningField(name: string | undefined): name is ReasoningField {
  return reasoningFields.some((field) => field === name);
}

/** Decodes one chat completion, streamed or whole. A whole message has the shape of one complete delta. */
export class ChatDecoder implements Decoder {
  readonly #endpoint: Endpoint;
  readonly #reply: ReplyDecoder;
  readonly #callAt = new Map<unknown, PartialCall>();
  #latestCall: PartialCall | undefined;
  #finishReason: string | undefined;
  #usage: Usage | undefined;
  #reasoningField: ReasoningField | undefined;
  readonly #details: ReasoningDetails;
  readonly #callExtras = new Map<PartialCall, Fields>();
  #extra: Fields | undefined;
  #hasThinking = false;
  #opaque = "";
  #refusal = "";
  readonly #citations = new OpenaiCitations();
  readonly #annotations: unknown[] = [];
  #text = "";
  /** True if the text so far ends inside a thought. */
  #isThought = false;

  constructor(endpoint: Endpoint, request: ModelRequest) {
    this.#endpoint = endpoint;
    this.#reply = new ReplyDecoder(endpoint.id, request);
    this.#details = new ReasoningDetails(endpoint.id);
  }

  get state(): Decoder["state"] {
    return this.#finishReason === undefined ? "open" : "finished";
  }

  event(data: unknown): boolean {
    const { choices } = this.#readFrame(data);
    if (!Array.isArray(choices)) return true;
    for (const choice of choices) {
      if (!isObject(choice)) continue;
      if (isObject(choice.delta)) this.#readDelta(choice.delta, "part");
      else if (isObject(choice.message)) this.#readDelta(choice.message, "whole");
      this.#finishReason = textOf(choice.finish_reason) || this.#finishReason;
    }
    return true;
  }

  /** Several choices are one reply: some servers put each call into its own choice. */
  whole(data: unknown): void {
    const { choices } = this.#readFrame(data);
    if (!Array.isArray(choices)) throw protocolError(this.#endpoint.id, "the reply is not a chat completion");
    const reasons = choices.filter(isObject).map((choice) => {
      if (isObject(choice.message)) this.#readDelta(choice.message, "whole");
      return textOf(choice.finish_reason) || (isObject(choice.message) ? "stop" : "");
    });
    this.#finishReason = reasons.find((reason) => reason !== "" && reason !== "stop") ?? reasons.find(Boolean);
  }

  /** Infers the finish reason for servers that send none: usage and the end marker together imply it. */
  end(): void {
    if (this.#usage && (this.#text !== "" || this.#reply.hasCalls)) this.#finishReason ??= "stop";
  }

  drain(): readonly ModelEvent[] {
    return this.#reply.drain();
  }

  finish(): readonly ModelEvent[] {
    const isRefused = this.#refusal !== "" && this.#text === "" && !this.#reply.hasCalls;
    if (this.#finishReason === "content_filter" || isRefused) {
      return this.#reply.fail(refusedContent(this.#endpoint, { said: this.#refusal }), this.#usage);
    }
    if (this.#finishReason === "error") throw reportedError(this.#endpoint, undefined);
    this.#citations.annotate(this.#annotations, this.#text, 0);
    return this.#reply.finish({
      stop: this.#finishReason === "length" ? "length" : "done",
      usage: this.#usage,
      reasoning: this.#reasoningToKeep(),
      citations: this.#citations.all(this.#text),
    });
  }

  /** Reads the fields that a chunk and a whole reply share, except the choices. */
  #readFrame(frame: unknown): Fields {
    if (!isObject(frame)) throw protocolError(this.#endpoint.id, "the reply is not a chat completion");
    if (frame.error) throw reportedError(this.#endpoint, frame.error);
    if (isObject(frame.usage)) this.#usage = usageOf(frame.usage);
    this.#citations.list(frame);
    return frame;
  }

  #readDelta(delta: Fields, extent: "part" | "whole"): void {
    this.#readReasoning(delta, extent);
    this.#readContent(delta);
    if (Array.isArray(delta.annotations) && this.#annotations.length < citationLimits.references) {
      this.#annotations.push(...delta.annotations);
    }
    if (typeof delta.refusal === "string") this.#refusal = this.#reply.keep(this.#refusal, delta.refusal);
    if (Array.isArray(delta.tool_calls)) for (const part of delta.tool_calls) this.#readCall(part, extent);
  }

  #readContent({ content, extra_content: extra }: Fields): void {
    const { google, ...others }: Fields = isObject(extra) ? extra : {};
    const { thought, ...signed }: Fields = isObject(google) ? google : {};
    const kept = { ...others, ...(Object.keys(signed).length > 0 && { google: signed }) };
    if (Object.keys(kept).length > 0) this.#extra = mergedExtra(this.#extra, kept);
    for (const { type, text } of contentParts(content)) {
      if (type === "thinking") {
        this.#hasThinking = true;
        this.#reply.reasoning(text);
      } else {
        this.#readText(text, thought === true);
      }
    }
  }

  /** Separates thoughts from the answer. Gemini marks both alike, so the tags around thoughts decide. */
  #readText(text: string, isMarked: boolean): void {
    const { thought, answer } = splitThought(text, { isMarked, isInside: this.#isThought });
    this.#isThought = thought !== "" && answer === undefined;
    this.#reply.reasoning(thought.replace(OPEN_THOUGHT, ""));
    this.#text += answer ?? "";
    this.#reply.text(answer ?? "");
  }

  #readReasoning(delta: Fields, extent: "part" | "whole"): void {
    const detailText = this.#details.add(delta.reasoning_details, extent);
    if (detailText !== "" && !reasoningFields.some((field) => textOf(delta[field]) !== "")) {
      this.#reply.reasoning(detailText);
    }
    for (const field of reasoningFields) {
      const text = delta[field];
      if (typeof text !== "string" || text === "" || (this.#reasoningField ?? field) !== field) continue;
      this.#reasoningField = field;
      this.#reply.reasoning(text);
    }
    const opaque = textOf(delta.reasoning_opaque);
    if (opaque !== "") this.#opaque = this.#reply.keep(this.#opaque, opaque);
  }

  #readCall(part: unknown, extent: "part" | "whole"): void {
    if (!isObject(part)) throw protocolError(this.#endpoint.id, "the reply contains an invalid tool call");
    const { name, arguments: argumentText }: Fields = isObject(part.function) ? part.function : {};
    const known = extent === "part" ? this.#knownCall(part, textOf(name)) : undefined;
    const call = known ?? this.#reply.openCall(part.id, name);
    if (!known && part.index !== undefined) this.#callAt.set(part.index, call);
    this.#latestCall = call;
    call.wireId ||= textOf(part.id);
    call.name ||= textOf(name);
    const { extra_content: extra } = part;
    if (isObject(extra)) this.#callExtras.set(call, mergedExtra(this.#callExtras.get(call), extra));
    if (typeof argumentText === "string") this.#reply.argument(call, argumentText);
    else if (isObject(argumentText)) this.#reply.argument(call, JSON.stringify(argumentText));
  }

  /** Returns the call that a stream part continues. Accepts servers that omit the index or always send 0. */
  #knownCall(part: Fields, name: string): PartialCall | undefined {
    if (part.index === undefined) return name === "" ? this.#latestCall : undefined;
    const call = this.#callAt.get(part.index);
    const isAnother = call?.wireId && part.id && part.id !== call.wireId && name !== "";
    return isAnother ? undefined : call;
  }

  #reasoningToKeep(): Reasoning | undefined {
    const text = this.#reply.reasoningText;
    const details = this.#details.all;
    const calls = [...this.#callExtras].map(([call, extra]) => [this.#reply.idOf(call), extra] as const);
    const field = this.#hasThinking ? "thinking" : this.#reasoningField;
    if (details || calls.length > 0 || this.#extra || this.#hasThinking) {
      return replayReasoning(text, {
        provider: this.#endpoint.id,
        ...defined({ field }),
        ...(this.#opaque && { opaque: this.#opaque }),
        ...defined({ details, extra: this.#extra }),
        ...(calls.length > 0 && { calls: Object.fromEntries(calls) }),
      });
    }
    if (text === "" && this.#opaque === "") return undefined;
    return {
      ...(text && { text }),
      ...(this.#opaque && { opaque: this.#opaque }),
      wireField: this.#reasoningField ?? "reasoning_text",
    };
  }
}

const OPEN_THOUGHT = "<thought>";
const CLOSE_THOUGHT = "</thought>";

/** Splits a text into its leading thought and the answer. `answer` is `undefined` while the thought is open. */
function splitThought(
  text: string,
  { isMarked, isInside }: { readonly isMarked: boolean; readonly isInside: boolean },
): { readonly thought: string; readonly answer: string | undefined } {
  const begins = isInside || (isMarked && text.startsWith(OPEN_THOUGHT));
  const end = begins ? text.indexOf(CLOSE_THOUGHT) : -1;
  if (end !== -1) return { thought: text.slice(0, end), answer: text.slice(end + CLOSE_THOUGHT.length) };
  return begins && isMarked ? { thought: text, answer: undefined } : { thought: "", answer: text };
}

interface ContentPart {
  readonly type: "text" | "thinking";
  readonly text: string;
}

/** Returns the parts of content, which is text or a list. Skips parts of other kinds. */
function contentParts(content: unknown): readonly ContentPart[] {
  const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
  return parts.flatMap((part): ContentPart[] => {
    if (!isObject(part)) return [];
    const thinking = part.type === "thinking" ? thinkingText(part.thinking) : "";
    const text = part.type === "text" ? textOf(part.text) : "";
    if (thinking !== "") return [{ type: "thinking", text: thinking }];
    return text === "" ? [] : [{ type: "text", text }];
  });
}

/** Mistral nests parts in a thinking part; other servers put text there. */
function thinkingText(thinking: unknown): string {
  if (!Array.isArray(thinking)) return textOf(thinking);
  return thinking.map((part) => (isObject(part) ? textOf(part.text) : "")).join("");
}

function usageOf(usage: Fields): Usage {
  const input = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const output = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  return {
    inputTokens: countOf(usage.prompt_tokens),
    outputTokens: countOf(usage.completion_tokens),
    cacheReadTokens: countOf(input.cached_tokens ?? usage.prompt_cache_hit_tokens),
    cacheWriteTokens: countOf(input.cache_write_tokens ?? input.cache_creation_tokens),
    reasoningTokens: countOf(output.reasoning_tokens),
  };
}
