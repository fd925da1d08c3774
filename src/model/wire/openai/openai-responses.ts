/** OpenAI's responses wire. Nothing is stored on the server: reasoning is sent with the conversation, encrypted. */
import type { Document, Image, Message } from "../../../protocol/message.ts";
import type { ModelRequest, Provider, ToolDefinition } from "../../provider.ts";
import { encodeJson } from "../bounded-json.ts";
import { arrange, dataUrl, fittingId, objectText, type Pieces, parametersOf, remember, without } from "../encode.ts";
import type { Endpoint } from "../endpoint.ts";
import { aboutSchema, type OptionalParameter } from "../optional-parameters.ts";
import { responsesFormat, systemWithFormat } from "../response-format.ts";
import { wireProvider } from "../wire.ts";
import { RESPONSES, ResponsesDecoder } from "./openai-responses-reply.ts";

export interface OpenaiResponsesOptions {
  /** Requests a readable summary of the reasoning (default: on if an effort is set). */
  readonly reasoningSummary?: boolean;
}

export function openaiResponses(endpoint: Endpoint, options: OpenaiResponsesOptions = {}): Provider {
  const encodeMessage = remember((message: Message) => inputItems(message, endpoint.id));
  const encodeTools = remember(toolsText);
  return wireProvider(endpoint, {
    path: "/responses",
    decoder: (request) => new ResponsesDecoder(endpoint, request),
    optional,
    encode(request, refused) {
      const { model, messages, tools, stream, maxOutputTokens, cacheKey, responseFormat, webSearch } = request;
      const system = systemWithFormat(request, refused.has("text.format") ? "asked" : "enforced");
      const items = messages.map(encodeMessage).filter((text) => text !== "");
      return objectText({
        model: encodeJson(model),
        instructions: system === "" ? undefined : encodeJson(system),
        input: `[${items.join(",")}]`,
        tools: withSearch(tools.length > 0 ? encodeTools(tools) : undefined, webSearch),
        stream: stream ? "true" : undefined,
        store: "false",
        ...without(refused, {
          include: '["reasoning.encrypted_content"]',
          reasoning: reasoningText(request, options, refused),
          text: responseFormat && !refused.has("text.format") ? responsesFormat(responseFormat) : undefined,
          max_output_tokens: maxOutputTokens?.toString(),
          max_tool_calls: webSearch?.maxSearches.toString(),
          prompt_cache_key: cacheKey ? encodeJson(cacheKey) : undefined,
        }),
      });
    },
  });
}

const optional: readonly OptionalParameter[] = [
  { name: "reasoning.summary", aliases: ["reasoning_summary"] },
  { name: "reasoning.effort", aliases: ["reasoning_effort"] },
  { name: "include", aliases: ["reasoning.encrypted_content"] },
  { name: "reasoning" },
  { name: "text.format", aliases: ["json_schema", "json_object", "text"], unless: aboutSchema },
  { name: "max_output_tokens" },
  { name: "max_tool_calls" },
  { name: "prompt_cache_key" },
];

/** Returns the request's tools, with the provider's web search if requested. */
function withSearch(tools: string | undefined, webSearch: ModelRequest["webSearch"]): string | undefined {
  if (!webSearch) return tools;
  const search = '{"type":"web_search"}';
  return tools === undefined ? `[${search}]` : `[${search},${tools.slice(1)}`;
}

function reasoningText(
  request: ModelRequest,
  options: OpenaiResponsesOptions,
  refused: ReadonlySet<string>,
): string | undefined {
  const { reasoningSummary = options.reasoningSummary === false ? "none" : "auto" } = request;
  const effort = refused.has("reasoning.effort") ? undefined : request.reasoningEffort;
  const isAsked = reasoningSummary !== "auto" || request.reasoningEffort !== undefined;
  const wantsSummary = reasoningSummary !== "none" && isAsked && !refused.has("reasoning.summary");
  if (effort === undefined && !wantsSummary) return undefined;
  return encodeJson({
    ...(effort !== undefined && { effort: effort === "max" ? "xhigh" : effort }),
    ...(wantsSummary && { summary: reasoningSummary }),
  });
}

/** Returns the items of a message, joined. */
function inputItems(message: Message, provider: string): string {
  if (message.role === "user") {
    const { content, images = [], documents = [] } = message;
    const isPlain = images.length + documents.length === 0;
    return encodeJson({
      role: "user",
      content: isPlain ? content : [...parts(content, images), ...documents.map(file)],
    });
  }
  if (message.role === "tool") {
    const { toolCallId, content, images = [] } = message;
    const output = images.length > 0 ? parts(content, images) : content;
    return encodeJson({ type: "function_call_output", call_id: callId(toolCallId), output });
  }
  return arrange(message, assistantPieces, provider).join(",");
}

const callId = (toolCallId: string): string => fittingId(toolCallId, /^.{1,64}$/s, 64);

const assistantPieces: Pieces = {
  wireField: RESPONSES,
  text: (text, phase) => encodeJson({ role: "assistant", ...(phase && { phase }), content: text }),
  call: ({ toolCallId, name, arguments: input }) =>
    encodeJson({ type: "function_call", call_id: callId(toolCallId), name, arguments: encodeJson(input) }),
};

function parts(content: string, images: readonly Image[]): object[] {
  const text = (value: string | undefined): object[] => (value ? [{ type: "input_text", text: value }] : []);
  return [
    ...text(content),
    ...images.flatMap((image) => [
      ...text(image.description),
      { type: "input_image", image_url: dataUrl(image), detail: "auto" },
    ]),
  ];
}

const file = (document: Document): object => ({
  type: "input_file",
  filename: document.title,
  file_data: dataUrl(document),
});

function toolsText(tools: readonly ToolDefinition[]): string {
  const definitions = tools.map((tool) => ({
    type: "function",
    name: tool.name,
    description: tool.description,
    parameters: parametersOf(tool),
    strict: false,
  }));
  return encodeJson(definitions);
}
