/**
 * The state machine of a task; only `next` decides on transitions. A task starts as `queued`. `completed`, `failed` and
 * `cancelled` are final. A task occupies a slot while it is `running`.
 */
import type { TaskReason, TaskStatus } from "../tools/agents/task-port.ts";

export interface TaskState {
  readonly status: TaskStatus;
  /** Always set for idle and final states, never for `queued` or `running`. */
  readonly reason?: TaskReason;
}

export type TaskSignal =
  /** The task has a slot. */
  | { readonly kind: "slot_taken" }
  /**
   * The answer is over. `continues`: it can receive more messages, or already has; it then becomes idle instead of
   * ending. `answered` requires a non-empty answer.
   */
  | { readonly kind: "answer_ended"; readonly outcome: AnswerOutcome; readonly continues: boolean }
  /** The runner threw an error. */
  | { readonly kind: "runner_failed" }
  | { readonly kind: "resumed" }
  /** No more messages can arrive because the agent that started it has ended. */
  | { readonly kind: "parent_ended" }
  | { readonly kind: "stopped" }
  /** It was running or queued in a process that has ended. */
  | { readonly kind: "process_gone" };

type AnswerOutcome = "answered" | "empty" | "limit" | "failed" | "invalid_output" | "aborted";

export const queued: TaskState = { status: "queued" };

/** Returns the next state, or undefined if the signal does not apply. */
export function next(state: TaskState, signal: TaskSignal): TaskState | undefined {
  switch (state.status) {
    case "queued":
      if (signal.kind === "slot_taken") return { status: "running" };
      if (signal.kind === "process_gone") return { status: "idle", reason: "interrupted" };
      return signal.kind === "stopped" ? stopped : undefined;
    case "running":
      if (signal.kind === "answer_ended") return afterAnswer(signal.outcome, signal.continues);
      if (signal.kind === "runner_failed") return { status: "failed", reason: "error" };
      if (signal.kind === "process_gone") return { status: "idle", reason: "interrupted" };
      return signal.kind === "stopped" ? stopped : undefined;
    case "idle":
      if (signal.kind === "resumed") return queued;
      if (signal.kind === "parent_ended") return dismissedState(state.reason ?? "interrupted");
      return signal.kind === "stopped" ? stopped : undefined;
    case "completed":
    case "failed":
    case "cancelled":
      return undefined;
  }
}

export const isFinal = (status: TaskStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled";

/** Whether the task is idle or ended. */
export const isIdleOrEnded = (status: TaskStatus): boolean => status !== "queued" && status !== "running";

const stopped: TaskState = { status: "cancelled", reason: "stopped" };

const reasons: Record<AnswerOutcome, TaskReason> = {
  answered: "finished",
  empty: "empty",
  limit: "limit",
  failed: "error",
  invalid_output: "invalid_output",
  aborted: "stopped",
};

function afterAnswer(outcome: AnswerOutcome, continues: boolean): TaskState {
  const reason = reasons[outcome];
  return continues ? { status: "idle", reason } : endedState(reason);
}

/** An idle agent ends as completed, or as cancelled if its last message got no answer. */
function dismissedState(reason: TaskReason): TaskState {
  return { status: reason === "finished" ? "completed" : "cancelled", reason };
}

function endedState(reason: TaskReason): TaskState {
  if (reason === "finished") return { status: "completed", reason };
  return { status: reason === "stopped" ? "cancelled" : "failed", reason };
}
