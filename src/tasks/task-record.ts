import type { EventData } from "../protocol/event.ts";
import type { TaskReason, TaskStatus } from "../tools/agents/task-port.ts";

/** The request that created the task. */
export type TaskSpec = Readonly<EventData<"troupe.task_created">>;

export type TaskLimit = NonNullable<EventData<"troupe.task_state">["limit"]>;

/** The state of one task. Only the fold changes it. */
export interface TaskRecord {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly spec: TaskSpec;
  /** The tools it may use, restricted by its ancestors; null: no restriction. */
  readonly tools: readonly string[] | null;
  readonly status: TaskStatus;
  readonly reason: TaskReason | undefined;
  /** `sync` while a call waits for its answer. */
  readonly mode: "sync" | "background";
  readonly error: string | undefined;
  /** The limit that ended it. */
  readonly limit: TaskLimit | undefined;
  readonly answers: readonly StoredAnswer[];
  /** Messages delivered since its last answer. */
  readonly inbound: readonly string[];
  /** Whether its prompt is in its own conversation. */
  readonly isBriefed: boolean;
  /** Accepted messages that are not yet in its conversation, oldest first. */
  readonly messages: readonly TaskMessage[];
  /** Received a message while idle and is not awake yet. */
  readonly isCalled: boolean;
  readonly notice: NoticeDue | undefined;
  /** The last work that was handed to its own session. */
  readonly sent: SentWork | undefined;
  readonly usage: TaskUsage;
  readonly model: string | undefined;
  readonly latestIntent: string | undefined;
  /** Its last few activities, newest last. */
  readonly recentActivity: readonly Activity[];
  /** All times come from the log. */
  readonly createdAt: number;
  readonly changedAt: number;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Active time before the current answer. */
  readonly activeMs: number;
  readonly isRemoved: boolean;
}

export interface SentWork extends Pick<EventData<"troupe.task_sent">, "session" | "workId" | "agents" | "allowance"> {
  /** The number of the last line of its log that is counted in the usage. */
  readonly seq: number;
  /** The answer that it belonged to is over. */
  readonly isPast?: true;
  /** The branch or ref with the agent's changes. */
  readonly changes?: string;
  /** How it ended. */
  readonly returned?: Pick<EventData<"troupe.task_returned">, "outcome" | "message">;
}

export interface StoredAnswer {
  readonly number: number;
  readonly message: string;
  readonly reason: TaskReason;
  /** The answer is in either `response` or the file. */
  readonly response: string;
  readonly responseFile?: string;
}

export interface TaskMessage {
  readonly id: string;
  readonly content: string;
  /** The agent that sent it; absent for a user, a program or the main agent. */
  readonly from?: string;
}

export interface Activity {
  readonly message: string;
  readonly timestamp: number;
}

/** A transition to idle or ended of which the parent must be notified once. */
export interface NoticeDue {
  readonly to: TaskStatus;
  readonly answerNumber: number;
  /** `due`: not emitted yet. `emitted`: in the parent's conversation. `confirmed`: its delivery is logged too. */
  readonly state: "due" | "emitted" | "confirmed";
  readonly by: "notice" | "read";
  /** The call with which the parent read the result. If the call is cut off, the notice becomes due again. */
  readonly readBy?: string;
}

/** Usage of the agent itself, without its subagents. */
export interface TaskUsage {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** Null if the price of any call is unknown. */
  readonly costUsd: number | null;
  readonly toolCalls: number;
}

export const noUsage: TaskUsage = {
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  toolCalls: 0,
};

export function addUsage(a: TaskUsage, b: TaskUsage): TaskUsage {
  return {
    calls: a.calls + b.calls,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    costUsd: a.costUsd === null || b.costUsd === null ? null : addCosts(a.costUsd, b.costUsd),
    toolCalls: a.toolCalls + b.toolCalls,
  };
}

/** Rounds away floating-point errors, so that sums do not depend on the order of addition. */
const addCosts = (a: number, b: number): number => Math.round((a + b) * 1e12) / 1e12;
