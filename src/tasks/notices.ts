/**
 * The notice that a parent receives when a task becomes idle or ends. It contains only ids, fixed texts and escaped
 * text of others.
 */
import { quotedLine, wrapInTag } from "../lib/quoting.ts";
import type { EventData } from "../protocol/event.ts";
import type { TaskReason } from "../tools/agents/task-port.ts";
import type { TaskRecord } from "./task-record.ts";

export interface TaskNotice {
  readonly taskId: string;
  /** The text for the model, in its tags. */
  readonly content: string;
  readonly kind: EventData<"system.notification">["kind"];
  /** False: the notice does not wake an idle parent, which reads it with its next input. */
  readonly wakes: boolean;
  /**
   * Called right before the notice is emitted as the parent's `system.notification`. Returns true at most once. Returns
   * false if the notice was already read or is out of date; the caller must then emit nothing.
   */
  take(): boolean;
}

export function noticeOf(task: TaskRecord): Omit<TaskNotice, "take" | "wakes"> {
  const { id, spec, status } = task;
  const about = { agentId: id, agentType: spec.agentName, description: spec.description };
  const sentence = `Agent "${id}" (${quotedLine(spec.agentName)}) ${becameOf(task)}`;
  return {
    taskId: id,
    content: wrapInTag("system_notification", {}, sentence),
    kind:
      status === "idle"
        ? { type: "agent_idle", ...about }
        : { type: "agent_completed", ...about, status: status === "completed" ? "completed" : "failed" },
  };
}

function becameOf({ id, status, reason = "finished", error }: TaskRecord): string {
  const read = `Use read_agent with agent_id "${id}"`;
  if (status === "completed") return `has completed successfully. ${read} to retrieve the full results.`;
  if (status === "idle" && reason === "finished") {
    return `has finished processing and is now idle. ${read} to read the results, or write_agent to send follow-up messages.`;
  }
  const cause = error === undefined ? "" : ` (${quotedLine(error)})`;
  if (status === "idle") {
    return `${whatHappened[reason]}${cause} and is now idle. ${read} to read its partial results, or write_agent to let it continue.`;
  }
  const failure = reason === "error" ? "has failed with an error" : `has failed: it ${whatHappened[reason]}`;
  const end = status === "cancelled" ? "was stopped" : failure;
  return `${end}${cause}. ${read} to read its partial results. It cannot be continued.`;
}

const whatHappened: Record<TaskReason, string> = {
  finished: "finished",
  empty: "ended without an answer",
  limit: "was ended by a limit before it was done",
  error: "failed with an error",
  stopped: "was stopped",
  interrupted: "was interrupted when its process ended",
  invalid_output: "gave an answer that does not fit its schema",
};
