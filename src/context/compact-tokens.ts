/** Estimates the size of messages and tool definitions in tokens. */

import { estimateTokens } from "../lib/tokens.ts";
import type { Message, ToolMessage, UserMessage } from "../protocol/message.ts";

/** Tokens for the role, separators and ids around each message. */
const FRAME_TOKENS = 4;
/** Tokens that providers charge for an image of typical size. */
const IMAGE_TOKENS = 1_500;
/** Base64 characters of a document per token. Pages vary too much for a better estimate. */
const DOCUMENT_CHARACTERS = 20;

/** Estimates the tokens of one message. */
export function messageTokens(message: Message): number {
  const content = FRAME_TOKENS + estimateTokens(message.content);
  if (message.role !== "assistant") return content + binaryTokens(message);
  const { text = "", opaque = "" } = message.reasoning ?? {};
  const calls = message.calls.reduce((sum, call) => sum + callTokens(call.name, call.arguments), 0);
  return content + calls + estimateTokens(text) + estimateTokens(opaque);
}

function binaryTokens(message: UserMessage | ToolMessage): number {
  const documents = message.role === "user" ? (message.documents ?? []) : [];
  const read = documents.reduce((sum, { data }) => sum + Math.ceil(data.length / DOCUMENT_CHARACTERS), 0);
  return (message.images?.length ?? 0) * IMAGE_TOKENS + read;
}

/** Estimates the tokens of a tool's definition. */
export function definitionTokens(tool: { name: string; description: string; parameters: object }): number {
  const { name, description, parameters } = tool;
  return estimateTokens(JSON.stringify({ name, description, parameters }));
}

function callTokens(name: string, given: unknown): number {
  return FRAME_TOKENS + estimateTokens(name) + estimateTokens(JSON.stringify(given) ?? "");
}
