/** Whole texts, read from the events of a log: a view keeps only parts of them. */
import type { SessionEvent } from "../protocol/event.ts";

/** The whole text of an event of which a block shows a part. The block names the event by its `eventId`. */
export function fullText(event: SessionEvent): string {
  switch (event.type) {
    case "tool.execution_complete": {
      const { result, error } = event.data;
      return result?.content ?? error?.message ?? "";
    }
    case "assistant.message":
    case "troupe.partial_message":
    case "user.message":
      return event.data.content;
    case "session.compaction_complete":
      return event.data.summaryContent ?? event.data.error ?? "";
    case "troupe.task_state":
      return event.data.response ?? event.data.error ?? "";
    default:
      return "message" in event.data && typeof event.data.message === "string" ? event.data.message : "";
  }
}

/** The whole diff of an edit; empty for other calls. */
export function fullDiff(event: SessionEvent): string {
  return event.type === "tool.execution_complete" ? (event.data.result?.detailedContent ?? "") : "";
}

export interface WholeOutput {
  readonly kind: "reasoning" | "tool";
  /** Undefined for the main agent. */
  readonly agentId: string | undefined;
  /** Name and arguments of the call; empty for reasoning. */
  readonly title: string;
  readonly text: string;
}

/** The last `count` results of calls, with the main agent's reasoning between them, oldest first. */
export function lastOutputs(events: Iterable<SessionEvent>, count: number): readonly WholeOutput[] {
  const titles = new Map<string, string>();
  const found: WholeOutput[] = [];
  for (const event of events) {
    const { agentId } = event;
    const keyOf = (toolCallId: string): string => `${agentId ?? ""} ${toolCallId}`;
    if (event.type === "assistant.message" && event.data.reasoningText && agentId === undefined) {
      found.push({ kind: "reasoning", agentId, title: "", text: event.data.reasoningText });
    } else if (event.type === "tool.execution_start") {
      const { toolCallId, toolName, arguments: given = {} } = event.data;
      titles.set(keyOf(toolCallId), `${toolName} ${JSON.stringify(given)}`);
    } else if (event.type === "tool.execution_complete") {
      const key = keyOf(event.data.toolCallId);
      const title = titles.get(key) ?? event.data.toolCallId;
      titles.delete(key);
      found.push({ kind: "tool", agentId, title, text: fullDiff(event) || fullText(event) });
    }
    if (found.length > count) found.shift();
  }
  return found;
}
