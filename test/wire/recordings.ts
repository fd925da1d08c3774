/** One reply per wire with reasoning, text in several scripts, two calls and usage, and what must become of it. */
import type { ModelEvent, Provider } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { namedSse, sse } from "./support.ts";

export interface Recording {
  readonly wire: string;
  provider(endpoint: Endpoint): Provider;
  readonly stream: string;
  /** The same reply, not streamed. */
  readonly whole: object;
  /** The events of the stream; the whole reply gives the same. */
  readonly events: readonly ModelEvent[];
}

const chunk = (delta: object, finish_reason: string | null = null): object => ({
  id: "c1",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
});
const chatUsage = {
  prompt_tokens: 100,
  completion_tokens: 20,
  prompt_tokens_details: { cached_tokens: 64 },
  completion_tokens_details: { reasoning_tokens: 5 },
};
const callEvents: readonly ModelEvent[] = [
  { type: "call_delta", toolCallId: "call_a", name: "view", delta: '{"path":"/ä","n":1}' },
  { type: "call_delta", toolCallId: "call_b", name: "list", delta: "{}" },
  { type: "call", call: { toolCallId: "call_a", name: "view", arguments: { path: "/ä", n: 1 } } },
  { type: "call", call: { toolCallId: "call_b", name: "list", arguments: {} } },
];
const spoken: readonly ModelEvent[] = [
  { type: "reasoning", delta: "Let me see…" },
  { type: "text", delta: "Grüße 👋 世界" },
];
const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 64, cacheWriteTokens: 0, reasoningTokens: 5 };

const chat: Recording = {
  wire: "openai-chat",
  provider: openaiChat,
  stream: `${sse(
    chunk({ role: "assistant", content: "", reasoning_text: "Let me " }),
    chunk({ reasoning_text: "see…", reasoning_opaque: "sealed" }),
    chunk({ content: "Grüße 👋" }),
    chunk({ content: " 世界" }),
    chunk({ tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "view", arguments: "" } }] }),
    chunk({ tool_calls: [{ index: 0, id: "call_a", function: { name: "", arguments: '{"path":"/ä",' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '"n":1}' } }] }),
    chunk({ tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "list", arguments: "{}" } }] }),
    chunk({}, "tool_calls"),
    { id: "c1", choices: [], usage: chatUsage },
  )}data: [DONE]\n\n`,
  whole: {
    id: "c1",
    object: "chat.completion",
    choices: [
      {
        index: 0,
        finish_reason: "tool_calls",
        message: {
          role: "assistant",
          content: "Grüße 👋 世界",
          reasoning_text: "Let me see…",
          reasoning_opaque: "sealed",
          tool_calls: [
            { id: "call_a", type: "function", function: { name: "view", arguments: '{"path":"/ä","n":1}' } },
            { id: "call_b", type: "function", function: { name: "list", arguments: "{}" } },
          ],
        },
      },
    ],
    usage: chatUsage,
  },
  events: [
    ...spoken,
    ...callEvents,
    {
      type: "end",
      stop: "tools",
      usage,
      reasoning: { text: "Let me see…", opaque: "sealed", wireField: "reasoning_text" },
    },
  ],
};

const reasoningItem = {
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "Let me see…" }],
  encrypted_content: "c2VhbGVk",
};
const output = [
  reasoningItem,
  { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "Grüße 👋 世界" }] },
  { type: "function_call", id: "fc_1", call_id: "call_a", name: "view", arguments: '{"path":"/ä","n":1}' },
  { type: "function_call", id: "fc_2", call_id: "call_b", name: "list", arguments: "{}" },
];
const response = {
  id: "resp_1",
  object: "response",
  status: "completed",
  output,
  usage: {
    input_tokens: 100,
    output_tokens: 20,
    input_tokens_details: { cached_tokens: 64 },
    output_tokens_details: { reasoning_tokens: 5 },
  },
};
const added = (output_index: number, fields: object): { type: string } => ({
  type: "response.output_item.added",
  ...{ output_index, item: { ...output[output_index], ...fields } },
});
const done = (output_index: number): { type: string } => ({
  type: "response.output_item.done",
  ...{ output_index, item: output[output_index] },
});
const delta = (type: string, output_index: number, text: string): { type: string } => ({
  type,
  ...{ output_index, delta: text },
});

const responses: Recording = {
  wire: "openai-responses",
  provider: openaiResponses,
  stream: namedSse(
    { type: "response.created", ...{ response: { ...response, status: "in_progress", output: [], usage: null } } },
    added(0, { summary: [], encrypted_content: "" }),
    { type: "response.reasoning_summary_part.added", ...{ output_index: 0, summary_index: 0 } },
    delta("response.reasoning_summary_text.delta", 0, "Let me "),
    delta("response.reasoning_summary_text.delta", 0, "see…"),
    done(0),
    added(1, { content: [] }),
    delta("response.output_text.delta", 1, "Grüße 👋"),
    delta("response.output_text.delta", 1, " 世界"),
    done(1),
    added(2, { arguments: "" }),
    delta("response.function_call_arguments.delta", 2, '{"path":"/ä",'),
    delta("response.function_call_arguments.delta", 2, '"n":1}'),
    done(2),
    added(3, { arguments: "" }),
    delta("response.function_call_arguments.delta", 3, "{}"),
    done(3),
    { type: "response.completed", ...{ response } },
  ),
  whole: response,
  events: [
    ...spoken,
    ...callEvents,
    {
      type: "end",
      stop: "tools",
      usage,
      reasoning: {
        text: "Let me see…",
        opaque: JSON.stringify([{ from: "test" }, reasoningItem, 11, null, null]),
        wireField: "responses",
      },
    },
  ],
};

const thinking = { type: "thinking", thinking: "Let me see…", signature: "c2lnbmVk" };
const redacted = { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" };
const anthropicUsage = {
  input_tokens: 30,
  cache_read_input_tokens: 64,
  cache_creation_input_tokens: 6,
  output_tokens: 20,
};
const start = (index: number, content_block: object): { type: string } => ({
  type: "content_block_start",
  ...{ index, content_block },
});
const blockDelta = (index: number, change: object): { type: string } => ({
  type: "content_block_delta",
  ...{ index, delta: change },
});
const stop = (index: number): { type: string } => ({ type: "content_block_stop", ...{ index } });

const anthropic: Recording = {
  wire: "anthropic",
  provider: anthropicMessages,
  stream: namedSse(
    {
      type: "message_start",
      ...{ message: { id: "msg_1", type: "message", content: [], usage: { ...anthropicUsage, output_tokens: 1 } } },
    },
    start(0, { type: "thinking", thinking: "", signature: "" }),
    { type: "ping" },
    blockDelta(0, { type: "thinking_delta", thinking: "Let me " }),
    blockDelta(0, { type: "thinking_delta", thinking: "see…" }),
    blockDelta(0, { type: "signature_delta", signature: "c2lnbmVk" }),
    stop(0),
    start(1, redacted),
    stop(1),
    start(2, { type: "text", text: "" }),
    blockDelta(2, { type: "text_delta", text: "Grüße 👋" }),
    blockDelta(2, { type: "text_delta", text: " 世界" }),
    stop(2),
    start(3, { type: "tool_use", id: "call_a", name: "view", input: {} }),
    blockDelta(3, { type: "input_json_delta", partial_json: '{"path":"/ä",' }),
    blockDelta(3, { type: "input_json_delta", partial_json: '"n":1}' }),
    stop(3),
    start(4, { type: "tool_use", id: "call_b", name: "list", input: {} }),
    blockDelta(4, { type: "input_json_delta", partial_json: "{}" }),
    stop(4),
    {
      type: "message_delta",
      ...{ delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 20 } },
    },
    { type: "message_stop" },
  ),
  whole: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [
      thinking,
      redacted,
      { type: "text", text: "Grüße 👋 世界" },
      { type: "tool_use", id: "call_a", name: "view", input: { path: "/ä", n: 1 } },
      { type: "tool_use", id: "call_b", name: "list", input: {} },
    ],
    stop_reason: "tool_use",
    usage: anthropicUsage,
  },
  events: [
    ...spoken,
    ...callEvents,
    {
      type: "end",
      stop: "tools",
      usage: { ...usage, cacheWriteTokens: 6, reasoningTokens: 0 },
      reasoning: {
        text: "Let me see…",
        opaque: JSON.stringify([{ from: "test" }, thinking, redacted, 11, null, null]),
        wireField: "anthropic",
      },
    },
  ],
};

export const recordings: readonly Recording[] = [chat, responses, anthropic];
