/** OpenAI's chat completions wire, which most servers speak in some dialect. */
import { defined } from "../../../lib/defined.ts";
import type { AssistantMessage, Document, Image, Message } from "../../../protocol/message.ts";
import type { Provider, ToolDefinition } from "../../provider.ts";
import { encodeJson } from "../bounded-json.ts";
import { dataUrl, fittingId, objectText, parametersOf, remember, without } from "../encode.ts";
import type { Endpoint } from "../endpoint.ts";
import { aboutSchema, type OptionalParameter } from "../optional-parameters.ts";
import { chatFormat, systemWithFormat } from "../response-format.ts";
import { wireProvider } from "../wire.ts";
import { type ChatReplay, replayFor, unsignedCall } from "./openai-chat-replay.ts";
import { ChatDecoder, isReasoningField } from "./openai-chat-reply.ts";

export function openaiChat(endpoint: Endpoint): Provider {
  const { maxTokensField = "max_tokens", takesCacheKey, callIds, signedModels } = endpoint.chatDialect ?? {};
  const idOf = (id: string): string => (callIds ? fittingId(id, callIds.pattern, callIds.length) : id);
  const encodeMessage = messageEncoders({ provider: endpoint.id, idOf });
  const encodeTools = remember(toolsText);
  return wireProvider(endpoint, {
    path: "/chat/completions",
    decoder: (request) => new ChatDecoder(endpoint, request),
    optional,
    encode(request, refused) {
      const { model, tools, stream, maxOutputTokens, reasoningEffort, cacheKey, responseFormat } = request;
      const sends = (name: string): boolean => !refused.has(name);
      const system = systemWithFormat(request, sends("response_format") ? "enforced" : "asked");
      const encode = encodeMessage({
        signs: signedModels?.test(model) ?? false,
        replays: sends("reasoning_content"),
        extras: sends("extra_content"),
      });
      const maxTokens = [maxTokensField, "max_completion_tokens"].find(sends);
      return objectText({
        model: encodeJson(model),
        messages: `[${messageList(system, request.messages, encode).join(",")}]`,
        tools: tools.length > 0 ? encodeTools(tools) : undefined,
        stream: stream ? "true" : undefined,
        ...(maxTokens && { [maxTokens]: maxOutputTokens?.toString() }),
        ...without(refused, {
          stream_options: stream && endpoint.streamUsage !== false ? '{"include_usage":true}' : undefined,
          reasoning_effort: reasoningEffort && encodeJson(reasoningEffort === "max" ? "xhigh" : reasoningEffort),
          response_format: responseFormat && chatFormat(responseFormat),
          prompt_cache_key: takesCacheKey && cacheKey ? encodeJson(cacheKey) : undefined,
        }),
      });
    },
  });
}

const optional: readonly OptionalParameter[] = [
  { name: "stream_options" },
  { name: "reasoning_effort" },
  { name: "max_tokens" },
  { name: "max_completion_tokens" },
  { name: "response_format", aliases: ["json_schema", "json_object"], unless: aboutSchema },
  { name: "prompt_cache_key" },
  {
    name: "reasoning_content",
    aliases: ["reasoning_details", "reasoning_text", "reasoning_opaque", "reasoning", "thinking"],
  },
  { name: "extra_content" },
];

interface Receiver {
  /** Id of the provider. */
  readonly provider: string;
  /** Returns an id of a call that the server accepts. */
  idOf(toolCallId: string): string;
}

interface MessageOptions {
  /** Whether calls without a signature get the placeholder signature. */
  readonly signs: boolean;
  /** Whether reasoning is sent back. */
  readonly replays: boolean;
  /** Whether `extra_content` of messages is sent back. That of calls always is. */
  readonly extras: boolean;
}

type EncodeMessage = (message: Message) => MessageTexts;

/** Returns the encoder for the options in use. Each encodes a message once. */
function messageEncoders(receiver: Receiver): (options: MessageOptions) => EncodeMessage {
  const encoders = new Map<string, EncodeMessage>();
  return (options) => {
    const key = JSON.stringify(options);
    const known = encoders.get(key);
    if (known) return known;
    const made = remember((message: Message) => messageTexts(message, receiver, options));
    encoders.set(key, made);
    return made;
  };
}

/** A message, and the parts that this wire can only send after the current run of tool messages. */
interface MessageTexts {
  readonly text: string;
  readonly afterTools?: string;
}

function messageList(system: string, messages: readonly Message[], encode: EncodeMessage): string[] {
  const texts = system === "" ? [] : [encodeJson({ role: "system", content: system })];
  let waiting: string[] = [];
  for (const message of messages) {
    const { text, afterTools } = encode(message);
    if (message.role !== "tool" && waiting.length > 0) {
      texts.push(...waiting);
      waiting = [];
    }
    texts.push(text);
    if (afterTools) waiting.push(afterTools);
  }
  return waiting.length > 0 ? [...texts, ...waiting] : texts;
}

function messageTexts(message: Message, receiver: Receiver, options: MessageOptions): MessageTexts {
  if (message.role === "user") return { text: userText(message.content, message.images, message.documents) };
  if (message.role === "tool") {
    const { toolCallId, content, images = [] } = message;
    const text = encodeJson({ role: "tool", tool_call_id: receiver.idOf(toolCallId), content });
    return images.length > 0 ? { text, afterTools: userText("", images) } : { text };
  }
  return { text: encodeJson(assistantFields(message, receiver, options)) };
}

function assistantFields(message: AssistantMessage, receiver: Receiver, options: MessageOptions): object {
  const { calls } = message;
  const stored = replayFor(receiver.provider, message);
  const isSigned = stored?.extra !== undefined || calls.some(({ toolCallId }) => stored?.calls?.[toolCallId]);
  return {
    role: "assistant",
    ...(options.replays ? spokenFields(message, stored) : { content: spokenText(message) }),
    ...(stored?.extra && options.extras && { extra_content: stored.extra }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => {
        const extra =
          stored?.calls?.[call.toolCallId] ?? (options.signs && !isSigned && index === 0 ? unsignedCall : undefined);
        return {
          id: receiver.idOf(call.toolCallId),
          type: "function",
          function: { name: call.name, arguments: encodeJson(call.arguments) },
          ...defined({ extra_content: extra }),
        };
      }),
    }),
  };
}

/** Returns a reply's text and reasoning in the fields they came in. */
function spokenFields(message: AssistantMessage, replay: ChatReplay | undefined): object {
  const { reasoning } = message;
  const text = spokenText(message);
  const thought = reasoning?.text;
  if (replay?.field === "thinking" && thought) {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }], closed: true };
    return { content: text ? [thinking, { type: "text", text }] : [thinking] };
  }
  const field = replay?.field ?? reasoning?.wireField;
  const opaque = replay ? replay.opaque : isReasoningField(field) ? reasoning?.opaque : undefined;
  return {
    content: text,
    // The details contain the text.
    ...(isReasoningField(field) && thought && !replay?.details && { [field]: thought }),
    ...(opaque && { reasoning_opaque: opaque }),
    ...defined({ reasoning_details: replay?.details }),
  };
}

const spokenText = ({ content, calls }: AssistantMessage): string | null =>
  content === "" && calls.length > 0 ? null : content;

function userText(content: string, images: readonly Image[] = [], documents: readonly Document[] = []): string {
  if (images.length + documents.length === 0) return encodeJson({ role: "user", content });
  const parts = [
    ...images.flatMap((image) => [
      ...(image.description ? [{ type: "text", text: image.description }] : []),
      { type: "image_url", image_url: { url: dataUrl(image) } },
    ]),
    ...documents.map((document) => ({
      type: "file",
      file: { filename: document.title, file_data: dataUrl(document) },
    })),
  ];
  return encodeJson({ role: "user", content: content === "" ? parts : [{ type: "text", text: content }, ...parts] });
}

function toolsText(tools: readonly ToolDefinition[]): string {
  const definitions = tools.map((tool) => ({
    type: "function",
    function: { name: tool.name, description: tool.description, parameters: parametersOf(tool) },
  }));
  return encodeJson(definitions);
}
