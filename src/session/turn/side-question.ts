/** A question beside the conversation: the model sees the conversation, but the question is not stored. */
import type { Message } from "../../protocol/message.ts";
import type { Session } from "../session.ts";
import { callModelOnce } from "./single-call.ts";

/** Makes one model call, counted like any other. Throws a `TroupeError` if there is no answer. */
export async function askSideQuestion(session: Session, question: string, signal: AbortSignal): Promise<string> {
  const { prompt } = session.mainAgent;
  await prompt.ready?.(signal);
  const messages = withoutOpenCalls((await session.mainAgent.context?.messages()) ?? []);
  const call = {
    turnId: "aside",
    // Tools are included for the calls in the history, and to match the provider's cached prefix.
    system: prompt.system,
    tools: prompt.tools,
    messages: [...messages, { role: "user" as const, content: question }],
  };
  return (await callModelOnce(session, call, signal)).text;
}

/** Drops unanswered calls at the end, because providers reject a call without a result. */
function withoutOpenCalls(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex((message) => message.role === "assistant" && message.calls.length > 0);
  const calling = messages[last];
  if (calling?.role !== "assistant") return messages;
  const answered = new Set(messages.slice(last).map((message) => (message.role === "tool" ? message.toolCallId : "")));
  return calling.calls.every(({ toolCallId }) => answered.has(toolCallId)) ? messages : messages.slice(0, last);
}
