/**
 * Message content in the form of the GenAI conventions. It is exported only if the user enabled it; secrets are already
 * redacted.
 */
import type { Json } from "../lib/json.ts";
import { clip } from "../lib/text.ts";
import type { EventData } from "../protocol/event.ts";

export interface SaidMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly parts: readonly Json[];
  readonly finish_reason?: string;
}

const MAX_PART_CHARACTERS = 16_384;
const MAX_CHARACTERS = 65_536;

export const clippedText = (text: string): string => clip(text, MAX_CHARACTERS);

export function userSaid({ content, transformedContent }: EventData<"user.message">): SaidMessage {
  return { role: "user", parts: [textPart(transformedContent ?? content)] };
}

export const noticeSaid = (content: string): SaidMessage => ({ role: "user", parts: [textPart(content)] });

export function toolSaid({ toolCallId, result, error }: EventData<"tool.execution_complete">): SaidMessage {
  const response = clip(result?.content ?? error?.message ?? "", MAX_PART_CHARACTERS);
  return { role: "tool", parts: [{ type: "tool_call_response", id: toolCallId, response }] };
}

export function assistantSaid(message: EventData<"assistant.message">, finishReason: string): SaidMessage {
  const { content, reasoningText, toolRequests } = message;
  return {
    role: "assistant",
    parts: [
      ...(reasoningText ? [{ type: "reasoning", content: clip(reasoningText, MAX_PART_CHARACTERS) }] : []),
      ...(content === "" ? [] : [textPart(content)]),
      ...toolRequests.map(({ toolCallId, name, arguments: given = {} }) => {
        const text = JSON.stringify(given);
        return { type: "tool_call", id: toolCallId, name, arguments: text.length > MAX_PART_CHARACTERS ? "…" : given };
      }),
    ],
    finish_reason: finishReason,
  };
}

/** Returns the messages as one JSON value. If they are too long, the oldest are dropped. */
export function saidAs(messages: readonly SaidMessage[]): string {
  const kept: string[] = [];
  let characters = 0;
  for (const message of [...messages].reverse()) {
    const text = JSON.stringify(message);
    characters += text.length;
    if (characters > MAX_CHARACTERS && kept.length > 0) break;
    kept.unshift(text);
  }
  return `[${kept.join(",")}]`;
}

function textPart(text: string): Json {
  return { type: "text", content: clip(text, MAX_PART_CHARACTERS) };
}
