import { estimateTokens } from "../lib/tokens.ts";
import type { Message, ToolMessage, UserMessage } from "../protocol/message.ts";

/** Role, separators and ids that wires put around each message. */
const FRAME_TOKENS = 4;
/** What providers charge for a picture of usual size. */
const IMAGE_TOKENS = 1_500;
/** Of a document as it travels, for one token: pages differ too much to do better. */
const DOCUMENT_CHARACTERS = 20;

/** An estimate of what one message takes of a model's window. */
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

/** Of a tool as it is described to the model. */
export function definitionTokens(tool: { name: string; description: string; parameters: object }): number {
  const { name, description, parameters } = tool;
  return estimateTokens(JSON.stringify({ name, description, parameters }));
}

function callTokens(name: string, given: unknown): number {
  return FRAME_TOKENS + estimateTokens(name) + estimateTokens(JSON.stringify(given) ?? "");
}
