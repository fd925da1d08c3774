import type { Stamp } from "../lib/stamp.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { McpTaskProgress } from "../tools/agents/tasks.ts";
import type { JournalPorts } from "./journal.ts";
import type { Notice } from "./notices.ts";
import type { SlotLimits } from "./slots.ts";
import type { TaskMessage, TaskRecord, TaskSpec } from "./task-record.ts";
import type { TaskState } from "./task-state.ts";

export type TurnEnd =
  | { readonly kind: "answered"; readonly response: string }
  | { readonly kind: "empty" }
  | { readonly kind: "limit"; readonly message: string; readonly response: string }
  | { readonly kind: "failed"; readonly error: string; readonly response?: string }
  | { readonly kind: "invalid_output"; readonly error: string; readonly response: string }
  | { readonly kind: "aborted" };

/** What makes an agent work. */
export interface TaskRunner {
  /**
   * Runs one turn of the agent: the messages are what it is told now, each said as a `user.message` of the agent with
   * the message's id as `interactionId`. Resolves however it ends; rejects only for defects.
   */
  turn(task: TaskRecord, messages: readonly TaskMessage[], io: TurnPorts): Promise<TurnEnd>;
  /** Lets go of everything the task holds (processes, MCP, locks): once after each turn, before its rest is told. */
  release?(task: TaskRecord): Promise<void>;
}

export interface TurnPorts {
  readonly signal: AbortSignal;
  /** What it does at the moment, for who watches. */
  activity(text: string): void;
  /** What is known now of a call that an MCP server works on. */
  mcpTask(known: Omit<McpTaskProgress, "updatedAt">): void;
}

export interface TaskLimits extends SlotLimits {
  readonly maxDepth: number;
  /** Agents that one message may start in all, at any depth. Unlimited when absent. */
  readonly maxTotal?: number;
}

export interface RegistryOptions extends Omit<JournalPorts, "onTrouble"> {
  /** What the log held when the session was opened. Later events come by `observe`. */
  readonly events: Iterable<SessionEvent>;
  readonly stamp: Stamp;
  readonly runner: TaskRunner;
  readonly limits: TaskLimits;
  /** Keeps a text beside the log; returns the name by which `readLarge` finds it. */
  keepLarge(content: string): Promise<string>;
  readLarge(file: string): Promise<string>;
  /** Something for an agent, or for the main agent, to hear before its next model request. Wakes it if it is idle. */
  onNotice(parentId: string | undefined, notice: Notice): void;
  /** A state of a task is in the log. */
  onState?(task: TaskRecord, state: TaskState): void;
  onChange(): void;
  /** The log cannot be written; the registry keeps trying. */
  onTrouble?(error: unknown): void;
  /** Something here or in the runner is broken; the task ended as failed or went on. */
  onDefect?(error: unknown): void;
}

/** A task as asked for; its id is made from the name. */
export interface NewTask extends Omit<TaskSpec, "taskId" | "depth"> {
  readonly name: string;
}

/** By which call an agent (nobody = the main agent) reads. What its parent reads needs no notice. */
export interface Reader {
  readonly agentId?: string | undefined;
  readonly toolCallId: string;
}

export interface WaitOptions {
  readonly timeoutMs: number;
  /** Only a later turn counts. */
  readonly sinceTurn?: number;
  /** Ends the wait and nothing else. */
  readonly signal?: AbortSignal;
  readonly reader?: Reader;
}

/** `turn`: it has answered and works on already. `promoted`: it goes on in the background. */
export type WaitEnd = "ended" | "idle" | "turn" | "promoted" | "timeout";
