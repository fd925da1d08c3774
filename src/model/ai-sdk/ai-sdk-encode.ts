/** Encodes a request for the AI SDK's language model interface. */
import { defined } from "../../lib/defined.ts";
import { isObject, parseJson } from "../../lib/json.ts";
import type { AssistantMessage, Image, Message, ToolMessage } from "../../protocol/message.ts";
import type { ModelRequest, ResponseFormat, ToolDefinition } from "../provider.ts";

export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  /** Data that the provider requires back unchanged, such as a signature. */
  readonly providerOptions?: unknown;
}

/** Options that a package requires back with one of its calls, such as Gemini's thought signature. */
export interface CallOptions {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly providerOptions: unknown;
}

/** Returns the wire field that ties reasoning to its package. */
export function wireFieldOf(npm: string): string {
  return `ai-sdk:${npm}`;
}

export function toolsOf(tools: readonly ToolDefinition[]): object[] {
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    inputSchema: parameters,
  }));
}

export function responseFormatOf(format: ResponseFormat): object {
  if (format.type === "json_object") return { type: "json" };
  const { name, description, schema } = format.jsonSchema;
  return { type: "json", name, ...defined({ description }), schema };
}

export function promptOf({ system, messages }: ModelRequest, npm: string): object[] {
  const names = new Map<string, string>();
  for (const message of messages) {
    if (message.role === "assistant") for (const call of message.calls) names.set(call.toolCallId, call.name);
  }
  const prompt: object[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
  let results: object[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role !== "tool") {
      prompt.push(spoken(message, npm));
      continue;
    }
    if (results.length === 0) prompt.push({ role: "tool", content: results });
    results.push(resultPart(message, names));
    // Consecutive results form one message. Images are not allowed in it and follow as a user message.
    if (messages[index + 1]?.role === "tool") continue;
    results = [];
    prompt.push(...pictures(messages, index));
  }
  return prompt;
}

function spoken(message: Exclude<Message, ToolMessage>, npm: string): object {
  if (message.role === "assistant") return { role: "assistant", content: assistantParts(message, npm) };
  return { role: "user", content: [{ type: "text", text: message.content }, ...(message.images ?? []).map(filePart)] };
}

function assistantParts({ content, calls, reasoning }: AssistantMessage, npm: string): object[] {
  const kept = reasoning?.wireField === wireFieldOf(npm) ? storedParts(reasoning.opaque) : [];
  const optionsOf = (id: string): unknown => kept.find((part) => part.toolCallId === id)?.providerOptions;
  return [
    ...kept.filter((part) => part.type !== "tool-call"),
    ...(content === "" ? [] : [{ type: "text", text: content }]),
    ...calls.map((call) => ({
      type: "tool-call",
      toolCallId: call.toolCallId,
      toolName: call.name,
      input: call.arguments,
      ...(optionsOf(call.toolCallId) !== undefined && { providerOptions: optionsOf(call.toolCallId) }),
    })),
  ];
}

function storedParts(opaque: string | undefined): Record<string, unknown>[] {
  const parsed = opaque === undefined ? undefined : parseJson(opaque);
  const parts: readonly unknown[] = parsed?.ok && Array.isArray(parsed.value) ? parsed.value : [];
  return parts.filter(isObject);
}

function resultPart({ toolCallId, content, isError }: ToolMessage, names: ReadonlyMap<string, string>): object {
  const output = { type: isError ? "error-text" : "text", value: content };
  return { type: "tool-result", toolCallId, toolName: names.get(toolCallId) ?? "unknown", output };
}

/** Returns the images of the run of results that ends at `last`. */
function pictures(messages: readonly Message[], last: number): object[] {
  const images: Image[] = [];
  for (let index = last; index >= 0; index--) {
    const message = messages[index];
    if (message?.role !== "tool") break;
    images.unshift(...(message.images ?? []));
  }
  if (images.length === 0) return [];
  return [
    { role: "user", content: [{ type: "text", text: "The pictures of the results above:" }, ...images.map(filePart)] },
  ];
}

function filePart({ mimeType, data }: Image): object {
  return { type: "file", mediaType: mimeType, data };
}
