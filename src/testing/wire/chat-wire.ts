import { type Json, parseJson } from "../../lib/json.ts";
import type { ModelEnd, Usage } from "../../model/provider.ts";
import type { Message, ToolCall } from "../../protocol/message.ts";
import {
  type Body,
  commonFields,
  type Encoder,
  type Frame,
  objects,
  openaiError,
  type ReplyHead,
  stringOf,
  type TestWire,
  textOf,
} from "./wire.ts";

/** OpenAI chat completions, which most providers support. */
export const chatWire: TestWire = {
  name: "chat",
  readRequest(body) {
    const messages = objects(body.messages);
    return {
      ...commonFields(body),
      system: messages
        .filter(isSystem)
        .map(({ content }) => textOf(content))
        .join("\n\n"),
      messages: messages.filter((message) => !isSystem(message)).map(readMessage),
      tools: objects(body.tools)
        .flatMap((tool) => objects([tool.function]))
        .map((tool) => ({
          name: stringOf(tool.name),
          description: stringOf(tool.description),
          parameters: objects([tool.parameters])[0] ?? {},
        })),
    };
  },
  encoder: chatEncoder,
  errorBody: openaiError,
};

interface OpenCall {
  readonly id: string;
  readonly name: string;
  text: string;
}

function chatEncoder(head: ReplyHead): Encoder {
  const base = { id: `chatcmpl-${head.number}`, created: head.created, model: head.model };
  const calls: OpenCall[] = [];
  let content = "";
  let reasoning = "";
  const frame = (at: Frame["at"], delta: object, finish: string | null = null): Frame => ({
    at,
    data: data({ ...base, object: CHUNK, choices: [{ index: 0, delta, finish_reason: finish }] }),
  });

  return {
    begin: () => [frame("start", { role: "assistant", content: "" })],
    text(delta) {
      content += delta;
      return [frame("text", { content: delta })];
    },
    reasoning(delta) {
      reasoning += delta;
      return [frame("reasoning", { reasoning_content: delta })];
    },
    openCall({ toolCallId, name }) {
      const index = calls.push({ id: toolCallId, name, text: "" }) - 1;
      const opening = { index, id: toolCallId, type: "function", function: { name, arguments: "" } };
      return [frame("call", { tool_calls: [opening] })];
    },
    callArguments(toolCallId, delta) {
      const index = calls.findIndex(({ id }) => id === toolCallId);
      const call = calls[index];
      if (call) call.text += delta;
      return [frame("arguments", { tool_calls: [{ index, function: { arguments: delta } }] })];
    },
    closeCall: () => [],
    finish(end) {
      const options = objects([head.body.stream_options])[0];
      const usage = end.usage && options?.include_usage === true ? usageOf(end.usage) : undefined;
      return [
        frame("finish", {}, finishReason(end)),
        ...(usage ? [{ at: "finish" as const, data: data({ ...base, object: CHUNK, choices: [], usage }) }] : []),
        { at: "finish", data: "data: [DONE]\n\n" },
      ];
    },
    error: (error) => [{ at: "finish", data: data(openaiError(error)) }],
    whole(end) {
      const toolCalls = calls.map(({ id, name, text }) => ({
        id,
        type: "function",
        function: { name, arguments: text },
      }));
      const message = {
        role: "assistant",
        content: content === "" && calls.length > 0 ? null : content,
        ...(reasoning !== "" && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: toolCalls }),
      };
      const choices = [{ index: 0, message, finish_reason: finishReason(end) }];
      return { ...base, object: "chat.completion", choices, ...(end.usage && { usage: usageOf(end.usage) }) };
    },
  };
}

const CHUNK = "chat.completion.chunk";
const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

function finishReason(end: ModelEnd): string {
  if (end.error?.kind === "content_filter") return "content_filter";
  return end.stop === "tools" ? "tool_calls" : end.stop === "length" ? "length" : "stop";
}

function usageOf(usage: Usage): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

const isSystem = ({ role }: Body): boolean => role === "system" || role === "developer";

function readMessage(message: Body): Message {
  const content = textOf(message.content);
  if (message.role === "tool") {
    return { role: "tool", toolCallId: stringOf(message.tool_call_id), content, isError: false };
  }
  if (message.role !== "assistant") return { role: "user", content };
  const calls = objects(message.tool_calls).map((call): ToolCall => {
    const called = objects([call.function])[0] ?? {};
    return {
      toolCallId: stringOf(call.id),
      name: stringOf(called.name),
      arguments: jsonOrText(stringOf(called.arguments)),
    };
  });
  return { role: "assistant", content, calls };
}

/** Parses argument text. Text that is not JSON stays text. */
export function jsonOrText(text: string): Json {
  const parsed = parseJson(text);
  return parsed.ok ? parsed.value : text;
}
