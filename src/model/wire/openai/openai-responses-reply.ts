import { isObject } from "../../../lib/json.ts";
import type { Reasoning } from "../../../protocol/message.ts";
import { ModelError } from "../../model-error.ts";
import type { ModelEvent, ModelRequest, Usage } from "../../provider.ts";
import { type Layout, layoutText } from "../encode.ts";
import type { Endpoint } from "../endpoint.ts";
import { limits } from "../limits.ts";
import { countOf, type PartialCall, ReplyDecoder, textOf } from "../reply.ts";
import type { Decoder } from "../wire.ts";
import { protocolError, refusedContent, reportedError } from "../wire-error.ts";
import { OpenaiCitations } from "./openai-citations.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Marks reasoning that came over this wire. */
export const RESPONSES = "responses";

/** An output item while it arrives. */
interface OpenItem {
  readonly call: PartialCall | undefined;
  /** Offset of its text in the reply's text. */
  textStart: number;
  textLength: number;
  reasoningLength: number;
}

/** Decodes one response, streamed or whole. */
export class ResponsesDecoder implements Decoder {
  readonly #endpoint: Endpoint;
  readonly #reply: ReplyDecoder;
  readonly #items = new Map<unknown, OpenItem>();
  readonly #layout: Layout[number][] = [];
  readonly #citations = new OpenaiCitations();
  #text = "";
  #phase = "";
  #refusal = "";
  #isFiltered = false;
  #doneItems = 0;
  #searches = 0;
  #final: { readonly stop: "done" | "length"; readonly usage: Usage | undefined } | undefined;

  constructor(endpoint: Endpoint, request: ModelRequest) {
    this.#endpoint = endpoint;
    this.#reply = new ReplyDecoder(endpoint.id, request);
  }

  get state(): Decoder["state"] {
    return this.#final === undefined ? "open" : "closed";
  }

  event(data: unknown): boolean {
    if (!isObject(data)) throw protocolError(this.#endpoint.id, "the reply is not a response");
    if (isObject(data.error)) throw reportedError(this.#endpoint, data.error);
    this.#readEvent(data);
    return data.type !== "ping" && data.type !== "keepalive";
  }

  whole(data: unknown): void {
    const isResponse = isObject(data) && (Array.isArray(data.output) || data.error || data.status);
    if (!isResponse) throw protocolError(this.#endpoint.id, "the reply is not a response");
    this.#close(data, data.status ?? "completed");
  }

  drain(): readonly ModelEvent[] {
    return this.#reply.drain();
  }

  finish(): readonly ModelEvent[] {
    if (this.#isFiltered || (this.#refusal !== "" && !this.#reply.hasCalls)) {
      return this.#reply.fail(refusedContent(this.#endpoint, { said: this.#refusal }), this.#final?.usage);
    }
    return this.#reply.finish({
      stop: "done",
      ...this.#final,
      reasoning: this.#reasoningToKeep(),
      citations: this.#citations.all(this.#text),
      phase: this.#phase,
    });
  }

  #readEvent(event: Fields): void {
    switch (event.type) {
      case "response.output_text.delta":
        this.#addText(this.#itemAt(event.output_index), textOf(event.delta));
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#addReasoning(this.#itemAt(event.output_index), textOf(event.delta));
        break;
      case "response.reasoning_summary_part.added":
        this.#separateSummaries(this.#itemAt(event.output_index));
        break;
      case "response.refusal.delta":
        this.#refusal = this.#reply.keep(this.#refusal, textOf(event.delta));
        break;
      case "response.function_call_arguments.delta":
        this.#addArgument(event);
        break;
      case "response.output_item.added":
        this.#announce(event);
        break;
      case "response.output_item.done":
        if (isObject(event.item)) this.#closeItem(event.output_index, event.item);
        break;
      case "response.completed":
        this.#close(event.response, "completed");
        break;
      case "response.incomplete":
        this.#close(event.response, "incomplete");
        break;
      case "response.failed":
        this.#close(event.response, "failed");
        break;
      case "error":
        throw reportedError(this.#endpoint, { ...event, type: undefined });
    }
  }

  #announce({ output_index: key, item }: Fields): void {
    if (!isObject(item)) return;
    if (this.#items.has(key)) throw protocolError(this.#endpoint.id, "two items of the reply have the same index");
    this.#openItem(key, item);
  }

  #openItem(key: unknown, item: Fields): OpenItem {
    if (this.#items.size + this.#doneItems >= limits.blocks) {
      throw protocolError(this.#endpoint.id, "the reply has too many items");
    }
    const call = item.type === "function_call" ? this.#reply.openCall(item.call_id, item.name) : undefined;
    const open = { call, textStart: 0, textLength: 0, reasoningLength: 0 };
    this.#items.set(key, open);
    return open;
  }

  /** Returns the item, which the server may never have announced. */
  #itemAt(key: unknown): OpenItem {
    return this.#items.get(key) ?? this.#openItem(key, {});
  }

  #addText(item: OpenItem, delta: string): void {
    if (delta === "") return;
    if (item.textLength === 0) {
      this.#separateMessages();
      item.textStart = this.#text.length;
    }
    item.textLength += delta.length;
    this.#text += delta;
    this.#reply.text(delta);
  }

  /** Starts a new paragraph for each message of the reply. The break is not sent back. */
  #separateMessages(): void {
    if (this.#text === "") return;
    const missing = 2 - (/\n{0,2}$/.exec(this.#text)?.[0].length ?? 0);
    if (missing === 0) return;
    const separator = "\n".repeat(missing);
    this.#layout.push(missing);
    this.#text += separator;
    this.#reply.text(separator);
  }

  #addReasoning(item: OpenItem, delta: string): void {
    item.reasoningLength += delta.length;
    this.#reply.reasoning(delta);
  }

  #separateSummaries(item: OpenItem): void {
    if (item.reasoningLength > 0) this.#addReasoning(item, "\n\n");
  }

  #addArgument(event: Fields): void {
    const call = this.#items.get(event.output_index)?.call;
    if (!call) throw protocolError(this.#endpoint.id, "arguments came for a call that was never announced");
    this.#reply.argument(call, textOf(event.delta));
  }

  /** Ends an item: adds what was not streamed and records its position. */
  #closeItem(key: unknown, item: Fields): void {
    const open = this.#items.get(key) ?? this.#openItem(key, item);
    this.#items.delete(key);
    this.#doneItems++;
    if (item.type === "function_call") this.#closeCall(open, item);
    else if (item.type === "message") this.#closeMessage(open, item);
    else if (item.type === "web_search_call" && isSearch(item.action)) this.#searches++;
    else if (item.type === "reasoning") {
      if (open.reasoningLength === 0) this.#addReasoning(open, summaryOf(item));
      if (typeof item.encrypted_content === "string") this.#layout.push(replayable(item));
    }
  }

  #closeCall({ call }: OpenItem, item: Fields): void {
    if (!call) throw protocolError(this.#endpoint.id, "an item of the reply changed its kind");
    call.wireId ||= textOf(item.call_id);
    call.name ||= textOf(item.name);
    if (typeof item.arguments === "string") this.#reply.wholeArgument(call, item.arguments);
    this.#layout.push(null);
  }

  #closeMessage(open: OpenItem, item: Fields): void {
    const parts = Array.isArray(item.content) ? item.content.filter(isObject) : [];
    const texts = parts.filter((part) => part.type === "output_text").map((part) => textOf(part.text));
    const refusals = parts.filter((part) => part.type === "refusal").map((part) => textOf(part.refusal));
    this.#addText(open, restOf(texts.join(""), this.#text.slice(open.textStart, open.textStart + open.textLength)));
    this.#refusal ||= refusals.join("");
    const phase = textOf(item.phase);
    this.#phase = phase;
    if (open.textLength > 0) this.#layout.push(phase === "" ? open.textLength : { text: open.textLength, phase });
    let offset = open.textStart;
    for (const part of parts.filter(({ type }) => type === "output_text")) {
      this.#citations.annotate(part.annotations, textOf(part.text), offset);
      offset += textOf(part.text).length;
    }
  }

  /** Reads the response object of the last event, or of a reply that is not streamed. */
  #close(response: unknown, status: unknown): void {
    if (!isObject(response)) throw protocolError(this.#endpoint.id, "the reply is not a response");
    if (isObject(response.error)) throw reportedError(this.#endpoint, response.error);
    if (status === "failed" || status === "cancelled") throw reportedError(this.#endpoint, undefined);
    if (status !== "completed" && status !== "incomplete") throw ModelError.incomplete(this.#endpoint.id);
    if (this.#doneItems === 0 && Array.isArray(response.output)) {
      for (const [index, item] of response.output.entries()) if (isObject(item)) this.#closeItem(index, item);
    }
    const details = isObject(response.incomplete_details) ? response.incomplete_details : {};
    this.#isFiltered = details.reason === "content_filter";
    const counted = isObject(response.usage) ? usageOf(response.usage) : undefined;
    const usage = counted && { ...counted, ...(this.#searches > 0 && { webSearches: this.#searches }) };
    this.#final = { stop: status === "incomplete" ? "length" : "done", usage };
  }

  #reasoningToKeep(): Reasoning | undefined {
    const text = this.#reply.reasoningText;
    const hasMessages = this.#layout.filter((piece) => typeof piece === "number").length > 1;
    const hasItems = hasMessages || this.#layout.some((piece) => typeof piece === "object" && piece !== null);
    if (!hasItems && text === "") return undefined;
    return {
      ...(text && { text }),
      ...(hasItems && { opaque: layoutText(this.#endpoint.id, this.#layout) }),
      wireField: RESPONSES,
    };
  }
}

/** Returns the part of a whole text that was not streamed. Returns nothing if the texts differ. */
function restOf(whole: string, known: string): string {
  return whole.startsWith(known) ? whole.slice(known.length) : "";
}

function replayable({ type, id, summary, encrypted_content }: Fields): object {
  return { type, ...(typeof id === "string" && { id }), summary: summary ?? [], encrypted_content };
}

function summaryOf(item: Fields): string {
  const parts = [item.summary, item.content].find((list) => Array.isArray(list) && list.length > 0);
  return Array.isArray(parts) ? parts.map((part) => (isObject(part) ? textOf(part.text) : "")).join("\n\n") : "";
}

/** Opening a page, or finding a word in it, does not count as a search. */
const isSearch = (action: unknown): boolean => !isObject(action) || (action.type ?? "search") === "search";

function usageOf(usage: Fields): Usage {
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {};
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  return {
    inputTokens: countOf(usage.input_tokens),
    outputTokens: countOf(usage.output_tokens),
    cacheReadTokens: countOf(input.cached_tokens),
    cacheWriteTokens: countOf(input.cache_write_tokens),
    reasoningTokens: countOf(output.reasoning_tokens),
  };
}
