/** Anthropic's messages wire. */
import { defined } from "../../../lib/defined.ts";
import { isObject } from "../../../lib/json.ts";
import type { Document, Image, Message } from "../../../protocol/message.ts";
import type { ModelRequest, Provider, ReasoningEffort, ToolDefinition } from "../../provider.ts";
import { encodeJson } from "../bounded-json.ts";
import { arrange, hasOwnReasoning, objectText, type Pieces, parametersOf, remember, without } from "../encode.ts";
import type { Endpoint } from "../endpoint.ts";
import { aboutSchema, type OptionalParameter } from "../optional-parameters.ts";
import { anthropicFormat, systemWithFormat } from "../response-format.ts";
import { wireProvider } from "../wire.ts";
import { ANTHROPIC, AnthropicDecoder } from "./anthropic-reply.ts";

export interface AnthropicOptions {
  /** How the model accepts an effort (default: decided by its name). */
  readonly thinking?: "adaptive" | "budget" | "none";
  /** False for servers without `cache_control`. */
  readonly promptCache?: boolean;
}

export function anthropicMessages(endpoint: Endpoint, options: AnthropicOptions = {}): Provider {
  const encodeMessage = remember((message: Message) => messageBlocks(message, "plain", endpoint.id));
  const encodeCited = remember((message: Message) => messageBlocks(message, "cited", endpoint.id));
  const encodeTools = remember(toolTexts);
  return wireProvider(endpoint, {
    path: /\/v\d+\/*$/.test(endpoint.baseUrl) ? "/messages" : "/v1/messages",
    headers: { "anthropic-version": "2023-06-01" },
    decoder: (request) => new AnthropicDecoder(endpoint, request),
    optional,
    encode(request, refused) {
      const { model, tools, stream, citations, responseFormat } = request;
      const takesFormat = knowsFormats(model) && !refused.has("output_config.format");
      const format = responseFormat && takesFormat ? anthropicFormat(responseFormat) : undefined;
      const isCached = options.promptCache !== false && !refused.has("cache_control");
      const mark = isCached ? withCacheMarker : (block: string) => block;
      const system = systemWithFormat(request, format ? "enforced" : "asked");
      const { thinking, effort } = without(refused, thinkingOfRequest(request, endpoint.id, options));
      const messages = request.messages.map(citations ? encodeCited : encodeMessage);
      return objectText({
        model: encodeJson(model),
        max_tokens: String(maxTokensOf(request)),
        thinking: thinking && encodeJson(thinking),
        output_config: effort || format ? encodeJson({ ...defined({ effort }), ...(format && { format }) }) : undefined,
        system: system.trim() === "" ? undefined : `[${mark(encodeJson({ type: "text", text: system }))}]`,
        tools: toolList([...markLast(encodeTools(tools), mark), ...searchTool(request)]),
        messages: `[${messageTexts(messages, mark).join(",")}]`,
        stream: stream ? "true" : undefined,
      });
    },
  });
}

const toolList = (tools: readonly string[]): string | undefined =>
  tools.length === 0 ? undefined : `[${tools.join(",")}]`;

/**
 * Returns the provider's web search tool. This version runs on every model that searches. The 2026 version filters
 * pages by running code, on the latest models only.
 */
function searchTool({ webSearch }: ModelRequest): string[] {
  if (!webSearch) return [];
  return [encodeJson({ type: "web_search_20250305", name: "web_search", max_uses: webSearch.maxSearches })];
}

const optional: readonly OptionalParameter[] = [
  { name: "output_config.format", aliases: ["output_format"], unless: aboutSchema },
  { name: "effort", aliases: ["output_config.effort", "output_config"] },
  { name: "thinking", unless: /signature|block/i },
  { name: "cache_control" },
];

/** The blocks of one message. Results are separate because they must come first in the message that answers calls. */
interface Blocks {
  readonly role: "user" | "assistant";
  readonly results: readonly string[];
  readonly rest: readonly string[];
}

/** Merges consecutive messages of one role into one, as the API requires. */
function messageTexts(messages: readonly Blocks[], mark: (block: string) => string): string[] {
  const groups: { role: Blocks["role"]; results: string[]; rest: string[] }[] = [];
  for (const { role, results, rest } of messages) {
    if (results.length + rest.length === 0) continue;
    const last = groups.at(-1);
    if (last?.role === role) {
      last.results.push(...results);
      last.rest.push(...rest);
    } else {
      groups.push({ role, results: [...results], rest: [...rest] });
    }
  }
  const marked = new Set(groups.filter((group) => group.role === "user").slice(-MARKED_USER_MESSAGES));
  return groups.map((group) => {
    const blocks = [...group.results, ...group.rest];
    return `{"role":"${group.role}","content":[${(marked.has(group) ? markLast(blocks, mark) : blocks).join(",")}]}`;
  });
}

/**
 * Marks the end of this request for the next one, and the end of the previous one to read from. Four markers in total.
 */
const MARKED_USER_MESSAGES = 2;

function markLast(blocks: readonly string[], mark: (block: string) => string): string[] {
  return blocks.map((block, index) => (index === blocks.length - 1 ? mark(block) : block));
}

function withCacheMarker(block: string): string {
  return `${block.slice(0, -1)},"cache_control":{"type":"ephemeral"}}`;
}

/** Whether the reply should cite the documents. */
type Documents = "plain" | "cited";

function messageBlocks(message: Message, documents: Documents, provider: string): Blocks {
  if (message.role === "assistant") {
    return { role: "assistant", results: [], rest: arrange(message, assistantPieces, provider) };
  }
  if (message.role === "user") {
    const blocks = contentBlocks(message.content, message.images);
    const read = (message.documents ?? []).map((document) => documentBlock(document, documents));
    return { role: "user", results: [], rest: [...read, ...blocks].map(encodeJson) };
  }
  const { toolCallId, content, isError, images = [] } = message;
  const blocks = images.length > 0 ? contentBlocks(content, images) : content;
  const result = encodeJson({
    type: "tool_result",
    tool_use_id: wireId(toolCallId),
    ...(blocks.length > 0 && { content: blocks }),
    ...(isError && { is_error: true }),
  });
  return { role: "user", results: [result], rest: [] };
}

const assistantPieces: Pieces = {
  wireField: ANTHROPIC,
  text: (text) => encodeJson({ type: "text", text }),
  call: ({ toolCallId, name, arguments: input }) =>
    encodeJson({ type: "tool_use", id: wireId(toolCallId), name, input: isObject(input) ? input : {} }),
};

/** Replaces characters that this wire refuses in ids of other wires. */
function wireId(toolCallId: string): string {
  return toolCallId.replace(/[^a-zA-Z0-9_-]/g, "_") || "_";
}

function contentBlocks(content: string, images: readonly Image[] = []): object[] {
  const text = (value = ""): object[] => (value.trim() === "" ? [] : [{ type: "text", text: value }]);
  return [
    ...text(content),
    ...images.flatMap((image) => [
      ...text(image.description),
      { type: "image", source: { type: "base64", media_type: image.mimeType, data: image.data } },
    ]),
  ];
}

function documentBlock({ mimeType, data, title }: Document, documents: Documents): object {
  return {
    type: "document",
    source: { type: "base64", media_type: mimeType, data },
    title,
    ...(documents === "cited" && { citations: { enabled: true } }),
  };
}

function toolTexts(tools: readonly ToolDefinition[]): string[] {
  return tools.map((tool) =>
    encodeJson({ name: tool.name, description: tool.description, input_schema: parametersOf(tool) }),
  );
}

/** The API requires a limit. Old models refuse one above their own. */
function maxTokensOf({ model, maxOutputTokens }: ModelRequest): number {
  if (maxOutputTokens !== undefined) return maxOutputTokens;
  if (/claude-3[.-]5/.test(model)) return 8192;
  if (/claude-3-(?:opus|sonnet|haiku)/.test(model)) return 4096;
  return 32_000;
}

const budgets = { low: 4096, medium: 10_000, high: 20_000, xhigh: 28_000, max: 60_000 } as const;
const MIN_BUDGET = 1024;

interface ThinkingFields {
  readonly thinking?: object;
  readonly effort?: ReasoningEffort;
}

function thinkingOfRequest(request: ModelRequest, provider: string, options: AnthropicOptions): ThinkingFields {
  const { model, reasoningEffort } = request;
  if (reasoningEffort === undefined) return {};
  const thinking = options.thinking ?? thinkingOf(model);
  if (thinking === "adaptive") {
    return { thinking: { type: "adaptive" }, effort: reasoningEffort };
  }
  const budget = Math.min(budgets[reasoningEffort], maxTokensOf(request) - MIN_BUDGET);
  if (thinking === "none" || budget < MIN_BUDGET || answersForeignCall(request, provider)) return {};
  return { thinking: { type: "enabled", budget_tokens: budget } };
}

function thinkingOf(model: string): "adaptive" | "budget" | "none" {
  if (/claude-(?:2|3(?![.-]7)|instant)/.test(model)) return "none";
  return /claude-3[.-]7|claude-(?:opus|sonnet|haiku)-4(?:[.-][0-5])?(?:[-@:]\d{5,}.*|-latest)?$/.test(model)
    ? "budget"
    : "adaptive";
}

/**
 * True if the model accepts `output_config.format`: Claude 4.1 (Opus) and 4.5 and later. Other vendors' models do not.
 */
function knowsFormats(model: string): boolean {
  if (!/claude-/.test(model) || /claude-(?:2|3|v2|instant)/.test(model)) return false;
  return !/claude-(?:opus|sonnet|haiku)-4(?:-0)?(?:[@:-]\d{5,}.*|-latest)?$/.test(model);
}

/** True if the reply being answered has no thinking of its own. With a budget the API requires it. */
function answersForeignCall({ messages }: ModelRequest, provider: string): boolean {
  if (messages.at(-1)?.role !== "tool") return false;
  const asked = messages.findLast((message) => message.role === "assistant");
  return asked?.role === "assistant" && !hasOwnReasoning(asked, ANTHROPIC, provider);
}
