/**
 * How tools reach other agents. A task is an agent at work on something it was asked for: it has one id, which the
 * model, the user, clients and the log all use, and whatever became of it can be read by that id for ever.
 */
import type { Json } from "../../lib/json.ts";

/** `queued`: it waits for a free place. `idle`: its turn is over and it can be written to. The last three are final. */
export type TaskStatus = "queued" | "running" | "idle" | "completed" | "failed" | "cancelled";

/** Why a task is in its state; tells success from everything that only looks like it. */
export type TaskReason = "finished" | "empty" | "limit" | "error" | "stopped" | "interrupted" | "invalid_output";

export interface TaskRequest {
  readonly description: string;
  readonly prompt: string;
  readonly agentType: string;
  /** What its id is made from. */
  readonly name: string;
  readonly mode: "sync" | "background";
  readonly model?: string;
  readonly reasoningEffort?: string;
  /** A JSON schema its answer must fit. */
  readonly outputSchema?: Readonly<Record<string, Json>>;
  /** Its own work tree, merged back by hand. */
  readonly isolation?: "worktree";
  readonly toolCallId: string;
  /** The run of a factory it works for. */
  readonly factoryRunId?: string;
  /** What it may cost beside what its definition says. */
  readonly costUsd?: number;
}

/** What anyone may know of a task. */
export interface TaskView {
  readonly id: string;
  readonly parentId?: string;
  readonly agentType: string;
  readonly description: string;
  readonly status: TaskStatus;
  readonly reason?: TaskReason;
  readonly mode: "sync" | "background";
  /** As seen by who asks. */
  readonly relation: "self" | "child" | "sibling" | "descendant" | "other";
  readonly model?: string;
  readonly startedAt: number;
  /** Since it was started, or until it ended. */
  readonly elapsedMs: number;
  /** Without the time it waited or was idle. */
  readonly activeMs: number;
  readonly turns: number;
  readonly toolCalls: number;
  readonly tokens: number;
  /** Null when the price is not known. */
  readonly costUsd: number | null;
  /** What it last said it was about to do. */
  readonly intent?: string;
  /** The last thing it did, and how long ago. */
  readonly lastActivity?: string;
  readonly quietMs: number;
  /** What it waits for: a place, a rate limit, an approval, an agent. */
  readonly waitingFor?: string;
  readonly unreadMessages: number;
  readonly worktree?: string;
  /** Of a call that an MCP server takes only as a task, while it is under way. */
  readonly mcpTask?: McpTaskProgress;
}

/** How far a server says it is. */
export interface McpTaskProgress {
  readonly taskId: string;
  readonly status: string;
  readonly message?: string;
  readonly progress?: number;
  readonly total?: number;
  /** Why less is known than should be: answers that got lost. */
  readonly warning?: string;
  readonly updatedAt: number;
}

/** One answer of an agent, and what it answered. */
export interface TaskTurn {
  readonly number: number;
  readonly message: string;
  readonly response: string;
}

export interface TaskReport {
  readonly task: TaskView;
  readonly turns: readonly TaskTurn[];
  /** What went wrong, when something did. */
  readonly error?: string;
}

export type TaskStart =
  /** It has answered, and ended unless it takes messages; the wait for it is over. */
  | { readonly kind: "ended"; readonly report: TaskReport }
  /** It goes on by itself: asked for in the background, or moved there while someone waited. */
  | { readonly kind: "background"; readonly id: string; readonly queued: boolean };

export interface MessageReceipt {
  readonly id: string;
  /** Undelivered ones come back with the reason. */
  readonly outcome: "delivered" | "queued" | "refused";
  readonly error?: string;
}

export type TaskScope = "siblings" | "children" | "all";

/** What an agent may do with other agents. Each method throws a `ToolError` that says what to do instead. */
export interface Tasks {
  /** Agents the model may choose, in the order they are shown. */
  agents(): readonly { readonly name: string; readonly description: string }[];
  start(request: TaskRequest, signal: AbortSignal): Promise<TaskStart>;
  read(
    request: {
      readonly id: string;
      readonly wait: boolean;
      readonly timeoutMs: number;
      readonly sinceTurn?: number;
      /** By which it is read; what it tells is told again when the call is cut off. */
      readonly toolCallId: string;
    },
    signal: AbortSignal,
  ): Promise<TaskReport>;
  write(
    target: { readonly ids: readonly string[] } | { readonly scope: TaskScope },
    message: string,
  ): Promise<readonly MessageReceipt[]>;
  list(options: { readonly scope?: TaskScope; readonly includeEnded: boolean }): readonly TaskView[];
  /** Ends it and everything it started. */
  stop(id: string, toolCallId: string): Promise<TaskReport>;
}
