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
