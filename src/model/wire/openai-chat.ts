/** The chat completions wire of OpenAI, which most servers speak in some dialect. */
import type { AssistantMessage, Document, Image, Message } from "../../protocol/message.ts";
import type { Provider, ToolDefinition } from "../provider.ts";
import { encodeJson } from "./bounded-json.ts";
import { dataUrl, objectText, parametersOf, remember } from "./encode.ts";
import { type ChatReplay, replayFor, unsignedCall } from "./openai-chat-replay.ts";
import { ChatDecoder, isReasoningField } from "./openai-chat-reply.ts";
import type { Place } from "./place.ts";
import { chatFormat, systemWithFormat } from "./response-format.ts";
import { wireProvider } from "./wire.ts";

export interface OpenaiChatOptions {
  /** What the server calls the limit of output tokens. OpenAI itself has its own name for it. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens";
}

export function openaiChat(place: Place, options: OpenaiChatOptions = {}): Provider {
  const isOpenai = /^https:\/\/[^/]*\.(?:openai|azure)\.com(?:[:/]|$)/.test(place.baseUrl);
  const maxTokensField = options.maxTokensField ?? (isOpenai ? "max_completion_tokens" : "max_tokens");
  const isGoogle = /^https:\/\/[^/]*\.googleapis\.com(?:[:/]|$)/.test(place.baseUrl);
  const encodePlain = remember((message: Message) => messageTexts(message, { provider: place.id, signs: false }));
  const encodeSigned = remember((message: Message) => messageTexts(message, { provider: place.id, signs: true }));
  const encodeTools = remember(toolsText);
  return wireProvider(place, {
    path: "/chat/completions",
    decoder: (request) => new ChatDecoder(place, request),
    encode(request) {
      const { model, tools, stream, maxOutputTokens, reasoningEffort, cacheKey, responseFormat } = request;
      const system = systemWithFormat(request, "enforced");
      const encodeMessage = isGoogle && needsSignatures.test(model) ? encodeSigned : encodePlain;
      return objectText({
        model: encodeJson(model),
        messages: `[${messageList(system, request.messages, encodeMessage).join(",")}]`,
        tools: tools.length > 0 ? encodeTools(tools) : undefined,
        stream: stream ? "true" : undefined,
        stream_options: stream && place.streamUsage !== false ? '{"include_usage":true}' : undefined,
        [maxTokensField]: maxOutputTokens?.toString(),
        reasoning_effort: reasoningEffort && encodeJson(reasoningEffort === "max" ? "xhigh" : reasoningEffort),
        response_format: responseFormat && chatFormat(responseFormat),
        prompt_cache_key: isOpenai && cacheKey ? encodeJson(cacheKey) : undefined,
      });
    },
  });
}

/** Gemini 3 and later. */
const needsSignatures = /gemini-(?:[3-9]|\d\d)/;

interface MessageOptions {
  /** Id of the provider that gets the request. */
  readonly provider: string;
  /** Whether calls without a signature get the one that stands for none. */
  readonly signs: boolean;
}

/** A message, and what this wire can only say after the run of tool messages it stands in. */
interface MessageTexts {
  readonly text: string;
  readonly afterTools?: string;
}

function messageList(
  system: string,
  messages: readonly Message[],
  encode: (message: Message) => MessageTexts,
): string[] {
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

function messageTexts(message: Message, options: MessageOptions): MessageTexts {
  if (message.role === "user") return { text: userText(message.content, message.images, message.documents) };
  if (message.role === "tool") {
    const { toolCallId, content, images = [] } = message;
    const text = encodeJson({ role: "tool", tool_call_id: toolCallId, content });
    return images.length > 0 ? { text, afterTools: userText("", images) } : { text };
  }
  return { text: encodeJson(assistantFields(message, options)) };
}

function assistantFields(message: AssistantMessage, { provider, signs }: MessageOptions): object {
  const { content, calls } = message;
  const replay = replayFor(provider, message);
  const isSigned = calls.some(({ toolCallId }) => replay?.calls?.[toolCallId]);
  return {
    role: "assistant",
    ...spokenFields(message, replay),
    ...(replay?.extra && content !== "" && { extra_content: replay.extra }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => {
        const extra =
          replay?.calls?.[call.toolCallId] ?? (signs && !isSigned && index === 0 ? unsignedCall : undefined);
        return {
          id: call.toolCallId,
          type: "function",
          function: { name: call.name, arguments: encodeJson(call.arguments) },
          ...(extra && { extra_content: extra }),
        };
      }),
    }),
  };
}

/** The text of a reply and its reasoning, in the fields they came in. */
function spokenFields({ content, calls, reasoning }: AssistantMessage, replay: ChatReplay | undefined): object {
  const text = content === "" && calls.length > 0 ? null : content;
  const thought = reasoning?.text;
  if (replay?.field === "thinking" && thought) {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }], closed: true };
    return { content: text ? [thinking, { type: "text", text }] : [thinking] };
  }
  const field = replay?.field ?? reasoning?.wireField;
  const opaque = replay ? replay.opaque : isReasoningField(field) ? reasoning?.opaque : undefined;
  return {
    content: text,
    // Details say all that the text says.
    ...(isReasoningField(field) && thought && !replay?.details && { [field]: thought }),
    ...(opaque && { reasoning_opaque: opaque }),
    ...(replay?.details && { reasoning_details: replay.details }),
  };
}

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
