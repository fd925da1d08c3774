import type { Stamp } from "../lib/stamp.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { McpTaskProgress } from "../tools/agents/task-port.ts";
import type { TaskJournalPorts } from "./journal.ts";
import type { TaskNotice } from "./notices.ts";
import type { SlotLimits } from "./slots.ts";
import type { TaskLimit, TaskMessage, TaskRecord, TaskSpec } from "./task-record.ts";
import type { TaskState } from "./task-state.ts";

export type AnswerEnd =
  | { readonly kind: "answered"; readonly response: string }
  | { readonly kind: "empty" }
  | { readonly kind: "limit"; readonly limit: TaskLimit; readonly message: string; readonly response: string }
  | { readonly kind: "failed"; readonly error: string; readonly response?: string }
  | { readonly kind: "invalid_output"; readonly error: string; readonly response: string }
  | { readonly kind: "aborted" };

/** Runs agents on behalf of the registry. */
export interface TaskRunner {
  /**
   * Lets the agent answer messages. The runner must emit each message as a `user.message` of the agent, with the message's
   * id as `interactionId`. Resolves for every outcome; rejects only for defects.
   */
  answer(task: TaskRecord, messages: readonly TaskMessage[], io: AnswerPorts): Promise<AnswerEnd>;
  /**
   * Releases everything the task holds (processes, MCP, locks). Called once after each answer, before its end is logged.
   */
  release?(task: TaskRecord): Promise<void>;
  /**
   * True for a task that works without this process. When the session is closed, its answer continues without it: `io.signal` aborts
   * with `DETACHED`. When the session is opened again, `answer` is called again for the same answer, with messages that were not
   * passed before.
   */
  continuesDetached?(task: TaskRecord): boolean;
}

/** The reason with which the signal of an answer aborts that continues without this process. */
export const DETACHED = new DOMException(
  "The session was closed, and the agent continues on another worker.",
  "AbortError",
);

export interface AnswerPorts {
  readonly signal: AbortSignal;
  /** Reports the current activity, for display. */
  activity(text: string): void;
  /** Reports the state of a call that an MCP server is working on. */
  mcpTask(known: Omit<McpTaskProgress, "updatedAt">): void;
}

export interface TaskLimits extends SlotLimits {
  readonly maxDepth: number;
  /** The maximum number of agents that one message may start, at any depth. Unlimited if absent. */
  readonly maxTotal?: number;
}

export interface RegistryOptions extends RegistryPorts {
  /** The log's events when the session was opened; they are not held. Later events are passed to `observe`. */
  readonly events: Iterable<SessionEvent>;
}

export interface RegistryPorts extends Omit<TaskJournalPorts, "onTrouble"> {
  readonly stamp: Stamp;
  readonly runner: TaskRunner;
  readonly limits: TaskLimits;
  /** Stores a text beside the log and returns its name for `readLarge`. */
  storeLarge(content: string): Promise<string>;
  readLarge(file: string): Promise<string>;
  /**
   * Called with a notice for an agent, or for the main agent (undefined), to read before its next model request. The
   * receiver must wake an idle agent if `notice.wakes`.
   */
  onNotice(parentId: string | undefined, notice: TaskNotice): void;
  /** Called when a new state of a task is in the log. */
  onState?(task: TaskRecord, state: TaskState): void;
  onChange(): void;
  /** Called when the log cannot be written. The registry keeps trying. */
  onTrouble?(error: unknown): void;
  /** Called for a bug here or in the runner. The task has failed or continues. */
  onDefect?(error: unknown): void;
}

/** A request for a new task. Its id is derived from the name. */
export interface NewTask extends Omit<TaskSpec, "taskId" | "depth"> {
  readonly name: string;
}

/**
 * The call with which an agent (undefined: the main agent) reads a task. A parent that reads a task needs no notice.
 */
export interface Reader {
  readonly agentId?: string | undefined;
  readonly toolCallId: string;
}

export interface TaskWaitOptions {
  readonly timeoutMs: number;
  /** Wait for an answer after the one with this number. */
  readonly sinceAnswer?: number;
  /** Ends only the wait. */
  readonly signal?: AbortSignal;
  readonly reader?: Reader;
}

/** `answered`: it has answered and is already working again. `promoted`: it continues in the background. */
export type WaitEnd = "ended" | "idle" | "answered" | "promoted" | "timeout";
