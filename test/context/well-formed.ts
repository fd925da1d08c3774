import type { Message } from "../../src/protocol/message.ts";

/** What wires demand: every call has its result right behind the reply, and no result is without its call. */
export function problemsOf(messages: readonly Message[]): string[] {
  const problems: string[] = [];
  let waiting = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!waiting.delete(message.toolCallId)) problems.push(`${index}: a result without its call`);
      continue;
    }
    if (waiting.size > 0) problems.push(`${index}: calls without results`);
    waiting = new Set(message.role === "assistant" ? message.calls.map(({ toolCallId }) => toolCallId) : []);
  }
  if (waiting.size > 0) problems.push("calls without results at the end");
  if (messages.length > 0 && messages[0]?.role === "tool") problems.push("begins with a result");
  return problems;
}
