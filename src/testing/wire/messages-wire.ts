import { type Json, parseJson } from "../../lib/json.ts";
import { type ModelEnd, noUsage, type Usage } from "../../model/provider.ts";
import type { Message, ToolCall } from "../../protocol/message.ts";
import {
  type Body,
  commonFields,
  type Encoder,
  type Frame,
  objects,
  type ReplyHead,
  serverSentEvent,
  stringOf,
  type TestWire,
  textOf,
  type WireError,
} from "./wire.ts";

/** Anthropic messages. */
export const messagesWire: TestWire = {
  name: "messages",
  readRequest(body) {
    return {
      ...commonFields(body),
      system: textOf(body.system),
      messages: objects(body.messages).flatMap(readMessage),
      tools: objects(body.tools).map((tool) => ({
        name: stringOf(tool.name),
        description: stringOf(tool.description),
        parameters: objects([tool.input_schema])[0] ?? {},
      })),
    };
  },
  encoder: (head) => new MessagesEncoder(head),
  errorBody: errorOf,
};

interface Block {
  readonly type: "text" | "thinking" | "tool_use";
  readonly id: string;
  readonly name: string;
  text: string;
  open: boolean;
}

class MessagesEncoder implements Encoder {
  readonly #head: ReplyHead;
  readonly #base: object;
  readonly #blocks: Block[] = [];

  constructor(head: ReplyHead) {
    this.#head = head;
    this.#base = { id: `msg_${head.number}`, type: "message", role: "assistant", model: head.model };
  }

  begin(): Frame[] {
    const usage = { ...usageOf(this.#head.usage), output_tokens: 1 };
    const message = { ...this.#base, content: [], stop_reason: null, stop_sequence: null, usage };
    return [frame("start", "message_start", { message })];
  }

  text(delta: string): Frame[] {
    return this.#write("text", delta, { type: "text_delta", text: delta });
  }

  reasoning(delta: string): Frame[] {
    return this.#write("thinking", delta, { type: "thinking_delta", thinking: delta });
  }

  openCall({ toolCallId, name }: Pick<ToolCall, "toolCallId" | "name">): Frame[] {
    return this.#open({ type: "tool_use", id: toolCallId, name, text: "", open: true });
  }

  callArguments(toolCallId: string, delta: string): Frame[] {
    const block = this.#call(toolCallId);
    if (!block) return [];
    block.text += delta;
    const fields = { index: this.#blocks.indexOf(block), delta: { type: "input_json_delta", partial_json: delta } };
    return [frame("arguments", "content_block_delta", fields)];
  }

  closeCall(toolCallId: string): Frame[] {
    const block = this.#call(toolCallId);
    return block ? this.#close(block) : [];
  }

  finish(end: ModelEnd): Frame[] {
    const closing = this.#blocks.flatMap((block) => this.#close(block));
    const delta = { stop_reason: stopReason(end), stop_sequence: null };
    const usage = { output_tokens: end.usage?.outputTokens ?? 0 };
    return [...closing, frame("finish", "message_delta", { delta, usage }), frame("finish", "message_stop", {})];
  }

  error(error: WireError): Frame[] {
    return [{ at: "finish", data: serverSentEvent("error", errorOf(error)) }];
  }

  whole(end: ModelEnd): object {
    const content = this.#blocks.map((block) => shownBlock(block, this.#head.opaque));
    return { ...this.#base, content, stop_reason: stopReason(end), stop_sequence: null, usage: usageOf(end.usage) };
  }

  #call(toolCallId: string): Block | undefined {
    return this.#blocks.find(({ id, type }) => type === "tool_use" && id === toolCallId);
  }

  #write(type: "text" | "thinking", text: string, delta: object): Frame[] {
    const last = this.#blocks.at(-1);
    const goesOn = last?.type === type && last.open;
    const block: Block = goesOn ? last : { type, id: "", name: "", text: "", open: true };
    const opening = goesOn ? [] : this.#open(block);
    block.text += text;
    return [...opening, frame(placeOf(block), "content_block_delta", { index: this.#blocks.indexOf(block), delta })];
  }

  #open(block: Block): Frame[] {
    const last = this.#blocks.at(-1);
    const closing = last && last.type !== "tool_use" ? this.#close(last) : [];
    const index = this.#blocks.push(block) - 1;
    const begun = {
      text: { type: "text", text: "" },
      thinking: { type: "thinking", thinking: "", signature: "" },
      tool_use: { type: "tool_use", id: block.id, name: block.name, input: {} },
    }[block.type];
    return [...closing, frame(placeOf(block), "content_block_start", { index, content_block: begun })];
  }

  #close(block: Block): Frame[] {
    if (!block.open) return [];
    block.open = false;
    const index = this.#blocks.indexOf(block);
    const at = placeOf(block);
    const signature = { type: "signature_delta", signature: this.#head.opaque };
    const signed = block.type === "thinking" && this.#head.opaque !== undefined;
    return [
      ...(signed ? [frame(at, "content_block_delta", { index, delta: signature })] : []),
      frame(at, "content_block_stop", { index }),
    ];
  }
}

function frame(at: Frame["at"], type: string, fields: object): Frame {
  return { at, data: serverSentEvent(type, { type, ...fields }) };
}

function placeOf({ type }: Block): Frame["at"] {
  return type === "tool_use" ? "call" : type === "text" ? "text" : "reasoning";
}

function shownBlock(block: Block, opaque = ""): object {
  if (block.type === "text") return { type: "text", text: block.text };
  if (block.type === "thinking") return { type: "thinking", thinking: block.text, signature: opaque };
  const parsed = parseJson(block.text);
  return { type: "tool_use", id: block.id, name: block.name, input: parsed.ok ? parsed.value : block.text };
}

function stopReason(end: ModelEnd): string {
  if (end.error) return "refusal";
  return end.stop === "tools" ? "tool_use" : end.stop === "length" ? "max_tokens" : "end_turn";
}

/** This API counts cached tokens separately from the rest of the input. */
function usageOf(usage: Usage = noUsage): object {
  return {
    input_tokens: usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
  };
}

function errorOf({ message, status }: WireError): object {
  return {
    type: "error",
    error: { type: errorTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error"), message },
  };
}

const errorTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** One message of this API may hold several of ours: tool results are sent inside a user message. */
function readMessage(message: Body): Message[] {
  const parts =
    typeof message.content === "string" ? [{ type: "text", text: message.content }] : objects(message.content);
  const content = textOf(parts.filter(({ type }) => type === "text"));
  if (message.role === "assistant") {
    const calls = parts.filter(({ type }) => type === "tool_use").map(readCall);
    return [{ role: "assistant", content, calls }];
  }
  const results = parts
    .filter(({ type }) => type === "tool_result")
    .map(
      (part: Body): Message => ({
        role: "tool",
        toolCallId: stringOf(part.tool_use_id),
        content: textOf(part.content),
        isError: part.is_error === true,
      }),
    );
  return content === "" && results.length > 0 ? results : [...results, { role: "user", content }];
}

function readCall(part: Body): ToolCall {
  return { toolCallId: stringOf(part.id), name: stringOf(part.name), arguments: (part.input ?? {}) as Json };
}
