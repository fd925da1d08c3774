import type { Emit, SessionEvent } from "../protocol/event.ts";

/** A message to the main agent that was accepted but has no outcome, because its process ended first. */
interface CutOff {
  /** The last turn of its answer, if one had started. */
  readonly turnId: string | undefined;
}

/**
 * Finds the message whose answer was cut off by the end of a process. A message has an outcome if the model answered
 * without calls, a call ended the answer, or the log records a failure, an abort or a limit.
 */
export const cutOff = (events: readonly SessionEvent[]): CutOff | undefined => lastOutcome(events).cut;

/** Returns the same, and the indexes of the deciding events. Those events alone give the same result. */
export function lastOutcome(events: readonly SessionEvent[]): {
  cut: CutOff | undefined;
  decidedBy: readonly number[];
} {
  const decidedBy: number[] = [];
  let turnId: string | undefined;
  let isRejected = false;
  const done = (index: number, cut?: CutOff) => ({ cut, decidedBy: [...decidedBy, index] });
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index];
    if (event === undefined || event.agentId !== undefined) continue;
    switch (event.type) {
      case "troupe.rewound":
      case "abort":
      case "troupe.limit_reached":
      case "session.task_complete":
        return done(index);
      case "session.error":
        if (event.data.errorType !== "notification") return done(index);
        break;
      case "assistant.turn_start":
      case "assistant.turn_end":
        if (turnId === undefined) decidedBy.push(index);
        turnId ??= event.data.turnId;
        break;
      case "tool.execution_complete":
        if (event.data.error?.code !== "rejected") break;
        if (!isRejected) decidedBy.push(index);
        isRejected = true;
        break;
      case "assistant.message":
        return done(index, isRejected || (event.data.toolRequests ?? []).length === 0 ? undefined : { turnId });
      case "user.message":
        if (event.data.interactionId !== undefined) return done(index, { turnId });
        break;
      default:
    }
  }
  return { cut: undefined, decidedBy };
}

/** Records an outcome for a message that was cut off. */
export async function sayCutOff(emit: Emit): Promise<void> {
  const message = "The process ended before the last message was answered. Send it again.";
  await emit("session.error", { errorType: "interrupted", message });
}
