import type { Emit, SessionEvent } from "../protocol/event.ts";

/** A message of the main agent's user that was taken up and has no outcome, because its process ended first. */
interface CutOff {
  /** The last turn of its answer, where one had begun. */
  readonly turnId: string | undefined;
}

/**
 * Finds the message that the end of a process cut off. A message has its outcome when the model answered without
 * calls, a call ended the turn, or the log says that the answer failed, was aborted or reached a limit.
 */
export function cutOff(events: readonly SessionEvent[]): CutOff | undefined {
  let turnId: string | undefined;
  let isRejected = false;
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index];
    if (event === undefined || event.agentId !== undefined) continue;
    switch (event.type) {
      case "troupe.rewound":
      case "abort":
      case "troupe.limit_reached":
      case "session.task_complete":
        return undefined;
      case "session.error":
        if (event.data.errorType !== "notification") return undefined;
        break;
      case "assistant.turn_start":
      case "assistant.turn_end":
        turnId ??= event.data.turnId;
        break;
      case "tool.execution_complete":
        isRejected ||= event.data.error?.code === "rejected";
        break;
      case "assistant.message":
        return isRejected || (event.data.toolRequests ?? []).length === 0 ? undefined : { turnId };
      case "user.message":
        if (event.data.interactionId !== undefined) return { turnId };
        break;
      default:
    }
  }
  return undefined;
}

/** Gives a message that was cut off its outcome. */
export async function sayCutOff(emit: Emit): Promise<void> {
  const message =
    "The process ended before the last message was answered. Send it again, or resume the session with continuePendingWork.";
  await emit("session.error", { errorType: "interrupted", message });
}
