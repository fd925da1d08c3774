/**
 * The port through which tools use other agents, and the tools themselves in this folder. A task is an agent that works
 * on a request. It has one id, which the model, the user, clients and the log share. Its outcome can be read by that id
 * at any later time.
 */
import type { Json } from "../../lib/json.ts";
import type { EventData } from "../../protocol/event.ts";

/** `queued`: waits for a free slot. `idle`: its answer is over and it accepts messages. The last three are final. */
export type TaskStatus = EventData<"troupe.task_state">["to"];

/** The reason for the status. Distinguishes success from endings that only look like it. */
export type TaskReason = NonNullable<EventData<"troupe.task_state">["reason"]>;

export interface TaskRequest {
  readonly description: string;
  readonly prompt: string;
  readonly agentType: string;
  /** The base of its id. */
  readonly name: string;
  readonly mode: "sync" | "background";
  readonly model?: string;
  readonly reasoningEffort?: string;
  /** A JSON schema for its answer. */
  readonly outputSchema?: Readonly<Record<string, Json>>;
  /** Runs in its own worktree, which is merged back by hand. */
  readonly isolation?: "worktree";
  readonly toolCallId: string;
  /** The factory run it belongs to. */
  readonly factoryRunId?: string;
  /** A cost limit in addition to the one of its definition. */
  readonly costUsd?: number;
}

/** The public state of a task. */
export interface TaskView {
  readonly id: string;
  readonly parentId?: string;
  readonly agentType: string;
  readonly description: string;
  readonly status: TaskStatus;
  readonly reason?: TaskReason;
  readonly mode: "sync" | "background";
  /** Relative to the caller. */
  readonly relation: "self" | "child" | "sibling" | "descendant" | "other";
  readonly model?: string;
  readonly startedAt: number;
  /** Time since the start, up to the end. */
  readonly elapsedMs: number;
  /** Excludes waiting and idle time. */
  readonly activeMs: number;
  /** The number of its answers; the name is that of the printed JSON. */
  readonly turns: number;
  readonly toolCalls: number;
  readonly tokens: number;
  /** Null when the price is unknown. */
  readonly costUsd: number | null;
  /** The intent it last reported. */
  readonly intent?: string;
  /** The last activity, and the time since then. */
  readonly lastActivity?: string;
  readonly quietMs: number;
  /** The reason it is waiting: a slot, a rate limit, an approval, an agent. */
  readonly waitingFor?: string;
  readonly unreadMessages: number;
  readonly worktree?: string;
  /** The branch or ref with the changes of an agent that ran on another worker. */
  readonly changes?: string;
  /** Progress of a call that an MCP server runs as a task, while it is running. */
  readonly mcpTask?: McpTaskProgress;
}

/** The progress that a server reports. */
export interface McpTaskProgress {
  readonly taskId: string;
  readonly status: string;
  readonly message?: string;
  readonly progress?: number;
  readonly total?: number;
  /** Set when the progress may be out of date because answers were lost. */
  readonly warning?: string;
  readonly updatedAt: number;
}

/** One answer of an agent, with the message it responds to. */
export interface TaskAnswer {
  readonly number: number;
  readonly message: string;
  readonly response: string;
}

export interface TaskReport {
  readonly task: TaskView;
  readonly answers: readonly TaskAnswer[];
  /** The error, for a failed task. */
  readonly error?: string;
}

export type TaskStart =
  /** The wait is over. It has answered, and it has ended unless it accepts messages. */
  | { readonly kind: "ended"; readonly report: TaskReport }
  /** It runs in the background: requested so, or moved there during the wait. */
  | { readonly kind: "background"; readonly id: string; readonly queued: boolean };

export interface MessageReceipt {
  readonly id: string;
  /** Undelivered messages are returned with the reason. */
  readonly outcome: "delivered" | "queued" | "refused";
  readonly error?: string;
}

export type TaskScope = "siblings" | "children" | "all";

/** Operations on other agents. Each method throws a `ToolError` that says what to do instead. */
export interface Tasks {
  /** The agents the model can choose, in display order. */
  agents(): readonly { readonly name: string; readonly description: string }[];
  start(request: TaskRequest, signal: AbortSignal): Promise<TaskStart>;
  /** Waits for a task that an earlier process started for this call. */
  rejoin(id: string, toolCallId: string, signal: AbortSignal): Promise<TaskStart>;
  read(
    request: {
      readonly id: string;
      readonly wait: boolean;
      readonly timeoutMs: number;
      readonly sinceAnswer?: number;
      /** The call that reads. If it is interrupted, the notice of the task is delivered again. */
      readonly toolCallId: string;
    },
    signal: AbortSignal,
  ): Promise<TaskReport>;
  write(
    target: { readonly ids: readonly string[] } | { readonly scope: TaskScope },
    message: string,
  ): Promise<readonly MessageReceipt[]>;
  list(options: { readonly scope?: TaskScope; readonly includeEnded: boolean }): readonly TaskView[];
  /** Ends the task and everything it started. */
  stop(id: string, toolCallId: string): Promise<TaskReport>;
}
