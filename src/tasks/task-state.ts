/**
 * What can become of a task, as a table: `next` is the only place that decides. A task is born `queued`; the last three
 * states are final. A place is held exactly while it is `running`.
 */
import type { TaskReason, TaskStatus } from "../tools/agents/tasks.ts";

export interface TaskState {
  readonly status: TaskStatus;
  /** Always there at rest, never while it waits or works. */
  readonly reason?: TaskReason;
}

export type TaskSignal =
  /** A place became free for it. */
  | { readonly kind: "place_taken" }
  /**
   * It is done with what it was told. `continues`: it can be told more, or has been already; then it rests instead of
   * ending. `answered` only with words.
   */
  | { readonly kind: "turn_ended"; readonly outcome: TurnOutcome; readonly continues: boolean }
  /** The part that runs it broke. */
  | { readonly kind: "broke" }
  | { readonly kind: "woken" }
  /** No more messages can come: the agent that started it has ended. */
  | { readonly kind: "dismissed" }
  | { readonly kind: "stopped" }
  /** It was at work, or waited for a place, in a process that is no more. */
  | { readonly kind: "process_gone" };

type TurnOutcome = "answered" | "empty" | "limit" | "failed" | "invalid_output" | "aborted";

export const queued: TaskState = { status: "queued" };

/** The state that follows, or undefined where the signal means nothing. */
export function next(state: TaskState, signal: TaskSignal): TaskState | undefined {
  switch (state.status) {
    case "queued":
      if (signal.kind === "place_taken") return { status: "running" };
      if (signal.kind === "process_gone") return { status: "idle", reason: "interrupted" };
      return signal.kind === "stopped" ? stopped : undefined;
    case "running":
      if (signal.kind === "turn_ended") return afterTurn(signal.outcome, signal.continues);
      if (signal.kind === "broke") return { status: "failed", reason: "error" };
      if (signal.kind === "process_gone") return { status: "idle", reason: "interrupted" };
      return signal.kind === "stopped" ? stopped : undefined;
    case "idle":
      if (signal.kind === "woken") return queued;
      if (signal.kind === "dismissed") return dismissed(state.reason ?? "interrupted");
      return signal.kind === "stopped" ? stopped : undefined;
    case "completed":
    case "failed":
    case "cancelled":
      return undefined;
  }
}

export const isFinal = (status: TaskStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled";

/** Neither working nor waiting for a place: idle, or at its end. */
export const isAtRest = (status: TaskStatus): boolean => status !== "queued" && status !== "running";

const stopped: TaskState = { status: "cancelled", reason: "stopped" };

const reasons: Record<TurnOutcome, TaskReason> = {
  answered: "finished",
  empty: "empty",
  limit: "limit",
  failed: "error",
  invalid_output: "invalid_output",
  aborted: "stopped",
};

function afterTurn(outcome: TurnOutcome, continues: boolean): TaskState {
  const reason = reasons[outcome];
  return continues ? { status: "idle", reason } : ended(reason);
}

/** An idle agent ends as completed, or as cancelled where its last turn gave no answer. */
function dismissed(reason: TaskReason): TaskState {
  return { status: reason === "finished" ? "completed" : "cancelled", reason };
}

function ended(reason: TaskReason): TaskState {
  if (reason === "finished") return { status: "completed", reason };
  return { status: reason === "stopped" ? "cancelled" : "failed", reason };
}
