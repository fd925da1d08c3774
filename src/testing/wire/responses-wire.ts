import type { ModelEnd, Usage } from "../../model/provider.ts";
import type { Message, ToolCall } from "../../protocol/message.ts";
import { jsonOrText } from "./chat-wire.ts";
import {
  type Body,
  commonFields,
  type Encoder,
  type Frame,
  objects,
  openaiError,
  type ReplyHead,
  serverSentEvent,
  stringOf,
  type TestWire,
  textOf,
  type WireError,
} from "./wire.ts";

/** OpenAI responses. */
export const responsesWire: TestWire = {
  name: "responses",
  readRequest(body) {
    const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : objects(body.input);
    const system = input.filter(isSystem).map((item) => textOf(item.content));
    return {
      ...commonFields(body),
      system: [stringOf(body.instructions), ...system].filter((text) => text !== "").join("\n\n"),
      messages: input.filter((item) => !isSystem(item)).flatMap(readItem),
      tools: objects(body.tools).map((tool) => ({
        name: stringOf(tool.name),
        description: stringOf(tool.description),
        parameters: objects([tool.parameters])[0] ?? {},
      })),
    };
  },
  encoder: (head) => new ResponsesEncoder(head),
  errorBody: openaiError,
};

type Item =
  | { readonly type: "message"; readonly id: string; text: string; open: boolean }
  | { readonly type: "reasoning"; readonly id: string; text: string; open: boolean }
  | {
      readonly type: "function_call";
      readonly id: string;
      readonly callId: string;
      readonly name: string;
      text: string;
      open: boolean;
    };

class ResponsesEncoder implements Encoder {
  readonly #head: ReplyHead;
  readonly #base: object;
  readonly #items: Item[] = [];
  #sequence = 0;

  constructor(head: ReplyHead) {
    this.#head = head;
    this.#base = { id: `resp_${head.number}`, object: "response", created_at: head.created, model: head.model };
  }

  begin(): Frame[] {
    const response = { ...this.#base, status: "in_progress", output: [] };
    return ["response.created", "response.in_progress"].map((type) => this.#frame("start", type, { response }));
  }

  text(delta: string): Frame[] {
    const { item, frames } = this.#current("message");
    item.text += delta;
    const fields = { ...this.#place(item), content_index: 0, delta, logprobs: [] };
    return [...frames, this.#frame("text", "response.output_text.delta", fields)];
  }

  reasoning(delta: string): Frame[] {
    const { item, frames } = this.#current("reasoning");
    item.text += delta;
    const fields = { ...this.#place(item), summary_index: 0, delta };
    return [...frames, this.#frame("reasoning", "response.reasoning_summary_text.delta", fields)];
  }

  openCall({ toolCallId, name }: Pick<ToolCall, "toolCallId" | "name">): Frame[] {
    const id = `fc_${this.#head.number}_${this.#items.length}`;
    return this.#open({ type: "function_call", id, callId: toolCallId, name, text: "", open: true });
  }

  callArguments(toolCallId: string, delta: string): Frame[] {
    const item = this.#call(toolCallId);
    if (!item) return [];
    item.text += delta;
    return [this.#frame("arguments", "response.function_call_arguments.delta", { ...this.#place(item), delta })];
  }

  closeCall(toolCallId: string): Frame[] {
    const item = this.#call(toolCallId);
    return item ? this.#close(item) : [];
  }

  finish(end: ModelEnd): Frame[] {
    const closing = this.#items.flatMap((item) => this.#close(item));
    const type = statusOf(end).status === "completed" ? "response.completed" : "response.incomplete";
    return [...closing, this.#frame("finish", type, { response: this.whole(end) })];
  }

  error({ code, status, message }: WireError): Frame[] {
    const error = { code: code ?? (status === 429 ? "rate_limit_exceeded" : "server_error"), message };
    const response = { ...this.#base, status: "failed", output: this.#output(), error };
    return [this.#frame("finish", "response.failed", { response })];
  }

  whole(end: ModelEnd): object {
    const usage = end.usage ? usageOf(end.usage) : null;
    return { ...this.#base, ...statusOf(end), output: this.#output(), usage };
  }

  #output(): object[] {
    return this.#items.map((item) => shownItem(item, this.#head.opaque));
  }

  #frame(at: Frame["at"], type: string, fields: object): Frame {
    return { at, data: serverSentEvent(type, { type, sequence_number: this.#sequence++, ...fields }) };
  }

  #place(item: Item): object {
    return { output_index: this.#items.indexOf(item), item_id: item.id };
  }

  #call(toolCallId: string): Item | undefined {
    return this.#items.find((item) => item.type === "function_call" && item.callId === toolCallId);
  }

  /** Returns the current text or reasoning item, and starts one if needed. */
  #current(type: "message" | "reasoning"): { item: Item; frames: Frame[] } {
    const last = this.#items.at(-1);
    if (last?.type === type && last.open) return { item: last, frames: [] };
    const id = `${type === "message" ? "msg" : "rs"}_${this.#head.number}_${this.#items.length}`;
    const item: Item = { type, id, text: "", open: true };
    return { item, frames: this.#open(item) };
  }

  #open(item: Item): Frame[] {
    const last = this.#items.at(-1);
    const closing = last && last.type !== "function_call" ? this.#close(last) : [];
    const output_index = this.#items.push(item) - 1;
    const at = points[item.type];
    const added = this.#frame(at, "response.output_item.added", { output_index, item: begunItem(item) });
    if (item.type === "function_call") return [...closing, added];
    const part =
      item.type === "message"
        ? this.#frame(at, "response.content_part.added", {
            ...this.#place(item),
            content_index: 0,
            part: outputText(""),
          })
        : this.#frame(at, "response.reasoning_summary_part.added", {
            ...this.#place(item),
            summary_index: 0,
            part: summaryText(""),
          });
    return [...closing, added, part];
  }

  #close(item: Item): Frame[] {
    if (!item.open) return [];
    item.open = false;
    const { text } = item;
    const done: Record<Item["type"], [type: string, fields: object][]> = {
      message: [
        ["response.output_text.done", { content_index: 0, text, logprobs: [] }],
        ["response.content_part.done", { content_index: 0, part: outputText(text) }],
      ],
      reasoning: [
        ["response.reasoning_summary_text.done", { summary_index: 0, text }],
        ["response.reasoning_summary_part.done", { summary_index: 0, part: summaryText(text) }],
      ],
      function_call: [["response.function_call_arguments.done", { arguments: text }]],
    };
    const at = points[item.type];
    const whole = { output_index: this.#items.indexOf(item), item: shownItem(item, this.#head.opaque) };
    return [
      ...done[item.type].map(([type, fields]) => this.#frame(at, type, { ...this.#place(item), ...fields })),
      this.#frame(at, "response.output_item.done", whole),
    ];
  }
}

const points: Readonly<Record<Item["type"], Frame["at"]>> = {
  message: "text",
  reasoning: "reasoning",
  function_call: "call",
};

const outputText = (text: string): object => ({ type: "output_text", text, annotations: [] });
const summaryText = (text: string): object => ({ type: "summary_text", text });

function begunItem(item: Item): object {
  if (item.type === "function_call") return { ...callItem(item), arguments: "", status: "in_progress" };
  if (item.type === "reasoning") return { type: "reasoning", id: item.id, summary: [] };
  return { type: "message", id: item.id, role: "assistant", status: "in_progress", content: [] };
}

function shownItem(item: Item, opaque: string | undefined): object {
  if (item.type === "function_call") return callItem(item);
  if (item.type === "message") {
    return { type: "message", id: item.id, role: "assistant", status: "completed", content: [outputText(item.text)] };
  }
  const secret = opaque !== undefined && { encrypted_content: opaque };
  return { type: "reasoning", id: item.id, summary: [summaryText(item.text)], ...secret };
}

function callItem(item: Extract<Item, { type: "function_call" }>): object {
  const { type, id, callId, name, text } = item;
  return { type, id, call_id: callId, name, arguments: text, status: "completed" };
}

function statusOf(end: ModelEnd): { status: string; incomplete_details?: object } {
  if (end.stop === "length") return { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  if (end.stop === "error") return { status: "incomplete", incomplete_details: { reason: "content_filter" } };
  return { status: "completed" };
}

function usageOf(usage: Usage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cacheReadTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

const isSystem = ({ role }: Body): boolean => role === "system" || role === "developer";

function readItem(item: Body): Message[] {
  if (item.type === "function_call_output") {
    return [{ role: "tool", toolCallId: stringOf(item.call_id), content: textOf(item.output), isError: false }];
  }
  if (item.type === "function_call") {
    const call = { toolCallId: stringOf(item.call_id), name: stringOf(item.name) };
    return [{ role: "assistant", content: "", calls: [{ ...call, arguments: jsonOrText(stringOf(item.arguments)) }] }];
  }
  if (item.role === "assistant") return [{ role: "assistant", content: textOf(item.content), calls: [] }];
  return item.role === "user" ? [{ role: "user", content: textOf(item.content) }] : [];
}
