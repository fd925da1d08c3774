import { isObject } from "../../../lib/json.ts";
import type { Reasoning } from "../../../protocol/message.ts";
import type { ModelError } from "../../model-error.ts";
import type { ModelEvent, ModelRequest, Usage } from "../../provider.ts";
import { layoutText } from "../encode.ts";
import type { Endpoint } from "../endpoint.ts";
import { limits } from "../limits.ts";
import { countOf, type PartialCall, ReplyDecoder, textOf } from "../reply.ts";
import type { Decoder } from "../wire.ts";
import { protocolError, refusedContent, reportedError } from "../wire-error.ts";
import { CitationReader } from "./anthropic-citations.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Marks reasoning that came over this wire. */
export const ANTHROPIC = "anthropic";

/** A content block while it arrives. */
type Block =
  | { readonly type: "text"; readonly start: number; textLength: number }
  | { readonly type: "call"; readonly call: PartialCall; readonly input: unknown }
  /** Thinking is sent back exactly as it came, with all its fields. */
  | { readonly type: "thinking"; readonly fields: Record<string, unknown> }
  | { readonly type: "other" };

/** Decodes one message, streamed or whole. */
export class AnthropicDecoder implements Decoder {
  readonly #endpoint: Endpoint;
  readonly #reply: ReplyDecoder;
  readonly #blocks: Block[] = [];
  readonly #blockAt = new Map<unknown, Block>();
  readonly #usage: Record<string, unknown> = {};
  readonly #citations = new CitationReader();
  #given: readonly Fields[] = [];
  #textLength = 0;
  #endsWithSpace = false;
  #stopReason: string | undefined;
  #stopDetails: Fields = {};
  #isStopped = false;

  constructor(endpoint: Endpoint, request: ModelRequest) {
    this.#endpoint = endpoint;
    this.#reply = new ReplyDecoder(endpoint.id, request);
  }

  get state(): Decoder["state"] {
    return this.#isStopped ? "closed" : "open";
  }

  event(data: unknown): boolean {
    if (!isObject(data)) throw protocolError(this.#endpoint.id, "the reply is not a message");
    this.#readEvent(data);
    return data.type !== "ping";
  }

  whole(data: unknown): void {
    if (isObject(data) && data.error) throw reportedError(this.#endpoint, data.error);
    if (!isObject(data) || !Array.isArray(data.content)) {
      throw protocolError(this.#endpoint.id, "the reply is not a message");
    }
    this.#readMessage(data);
    this.#useGivenBlocks();
    this.#isStopped = this.#stopReason !== undefined;
  }

  drain(): readonly ModelEvent[] {
    return this.#reply.drain();
  }

  finish(): readonly ModelEvent[] {
    const usage = Object.keys(this.#usage).length > 0 ? usageOf(this.#usage) : undefined;
    if (this.#stopReason === "refusal") return this.#reply.fail(this.#refusal(), usage);
    const isCut = this.#stopReason === "max_tokens" || this.#stopReason === "model_context_window_exceeded";
    return this.#reply.finish({
      stop: isCut ? "length" : "done",
      usage,
      reasoning: this.#reasoningToKeep(),
      citations: this.#citations.all,
    });
  }

  #readEvent(event: Fields): void {
    switch (event.type) {
      case "content_block_delta":
        this.#readDelta(event.index, event.delta);
        break;
      case "content_block_start":
        this.#start(event.index, event.content_block);
        break;
      case "content_block_stop":
        this.#closeBlock(this.#blockAt.get(event.index));
        break;
      case "message_start":
        if (isObject(event.message)) this.#readMessage(event.message);
        break;
      case "message_delta":
        if (isObject(event.delta)) this.#readStop(event.delta);
        this.#readUsage(event.usage);
        break;
      case "message_stop":
        if (this.#stopReason === undefined) {
          throw protocolError(this.#endpoint.id, "the reply ended without a stop reason");
        }
        this.#useGivenBlocks();
        this.#isStopped = true;
        break;
      case "error":
        throw reportedError(this.#endpoint, event.error);
    }
  }

  /** Reads a whole message or the beginning of one. Even a beginning may have blocks and a stop reason. */
  #readMessage(message: Fields): void {
    if (this.#blocks.length === 0 && Array.isArray(message.content)) this.#given = message.content.filter(isObject);
    this.#readUsage(message.usage);
    this.#readStop(message);
  }

  /** Uses the blocks of the message itself, unless the stream repeats them. */
  #useGivenBlocks(): void {
    const given = this.#given;
    this.#given = [];
    for (const content of given) this.#closeBlock(this.#openBlock(content));
  }

  #readStop({ stop_reason: reason, stop_details: details }: Fields): void {
    this.#stopReason = textOf(reason) || this.#stopReason;
    if (isObject(details)) this.#stopDetails = details;
  }

  #refusal(): ModelError {
    const { explanation, category, recommended_model: model } = this.#stopDetails;
    const details = { said: textOf(explanation), category: textOf(category), otherModel: textOf(model) };
    return refusedContent(this.#endpoint, details);
  }

  #start(index: unknown, content: unknown): void {
    if (!isObject(content)) return;
    if (typeof index === "number" && index >= this.#given.length) this.#useGivenBlocks();
    this.#given = [];
    if (this.#blockAt.has(index)) throw protocolError(this.#endpoint.id, "a block of the reply was started twice");
    this.#blockAt.set(index, this.#openBlock(content));
  }

  #openBlock(content: Fields): Block {
    if (this.#blocks.length >= limits.blocks) throw protocolError(this.#endpoint.id, "the reply has too many blocks");
    if (content.type === "text") this.#separateTexts();
    const block = this.#newBlock(content);
    this.#blocks.push(block);
    if (block.type === "text") {
      this.#addText(block, textOf(content.text));
      if (Array.isArray(content.citations)) for (const citation of content.citations) this.#citations.add(citation);
    }
    if (block.type === "thinking") this.#reply.reasoning(textOf(content.thinking));
    return block;
  }

  /** Starts a new paragraph for text after a search or another block. Cited text comes in consecutive text blocks. */
  #separateTexts(): void {
    const last = this.#blocks.at(-1);
    if (last === undefined || last.type === "text" || this.#textLength === 0 || this.#endsWithSpace) return;
    const separator = { type: "text" as const, start: this.#textLength, textLength: 0 };
    this.#blocks.push(separator);
    this.#addText(separator, "\n\n");
  }

  #newBlock(content: Fields): Block {
    switch (content.type) {
      case "text":
        return { type: "text", start: this.#textLength, textLength: 0 };
      case "tool_use":
        return { type: "call", call: this.#reply.openCall(content.id, content.name), input: content.input };
      case "thinking":
      case "redacted_thinking":
        return { type: "thinking", fields: { ...content } };
      default:
        return { type: "other" };
    }
  }

  /** Ends a block. A call whose arguments were not streamed has them in its first event. */
  #closeBlock(block: Block | undefined): void {
    if (block?.type === "text") this.#citations.close(block.start, block.start + block.textLength);
    if (block?.type !== "call" || block.call.argumentText !== "" || !isObject(block.input)) return;
    this.#reply.argument(block.call, JSON.stringify(block.input));
  }

  #readDelta(index: unknown, delta: unknown): void {
    const block = this.#blockAt.get(index);
    if (!block) throw protocolError(this.#endpoint.id, "a part of the reply came for a block that was never started");
    if (!isObject(delta)) return;
    if (block.type === "text") {
      if (delta.type === "citations_delta") this.#citations.add(delta.citation);
      else this.#addText(block, textOf(delta.text));
    } else if (block.type === "call") this.#reply.argument(block.call, textOf(delta.partial_json));
    else if (block.type === "thinking") this.#addThinking(block.fields, delta);
  }

  #addText(block: Block & { type: "text" }, delta: string): void {
    block.textLength += delta.length;
    this.#textLength += delta.length;
    if (delta !== "") this.#endsWithSpace = /\s$/.test(delta);
    this.#reply.text(delta);
  }

  #addThinking(fields: Record<string, unknown>, delta: Fields): void {
    if (delta.type === "signature_delta") {
      fields.signature = this.#reply.keep(textOf(fields.signature), textOf(delta.signature));
    } else if (delta.type === "thinking_delta") {
      fields.thinking = textOf(fields.thinking) + textOf(delta.thinking);
      this.#reply.reasoning(textOf(delta.thinking));
    }
  }

  #readUsage(counts: unknown): void {
    if (!isObject(counts)) return;
    for (const name of usageFields)
      if (counts[name] !== undefined && counts[name] !== null) this.#usage[name] = counts[name];
  }

  #reasoningToKeep(): Reasoning | undefined {
    if (!this.#blocks.some((block) => block.type === "thinking")) return undefined;
    const layout = this.#blocks.flatMap((block): (number | null | object)[] => {
      if (block.type === "text") return block.textLength > 0 ? [block.textLength] : [];
      if (block.type === "call") return [null];
      return block.type === "thinking" ? [block.fields] : [];
    });
    const text = this.#reply.reasoningText;
    return { ...(text && { text }), opaque: layoutText(this.#endpoint.id, layout), wireField: ANTHROPIC };
  }
}

const usageFields = [
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
  "output_tokens_details",
  "server_tool_use",
] as const;

/** Adds up input tokens, because this API counts cached ones separately. */
function usageOf(usage: Fields): Usage {
  const cacheReadTokens = countOf(usage.cache_read_input_tokens);
  const cacheWriteTokens = countOf(usage.cache_creation_input_tokens);
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  const searches = isObject(usage.server_tool_use) ? countOf(usage.server_tool_use.web_search_requests) : 0;
  return {
    inputTokens: countOf(usage.input_tokens) + cacheReadTokens + cacheWriteTokens,
    outputTokens: countOf(usage.output_tokens),
    cacheReadTokens,
    cacheWriteTokens,
    reasoningTokens: countOf(output.thinking_tokens),
    ...(searches > 0 && { webSearches: searches }),
  };
}
