import type { EventData } from "../protocol/event.ts";
import type { TaskReason, TaskStatus } from "../tools/agents/tasks.ts";

/** What was asked for when the task was made. */
export type TaskSpec = Readonly<EventData<"troupe.task_created">>;

/** Everything the log knows of a task. Only the fold changes one. */
export interface TaskRecord {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly spec: TaskSpec;
  /** What it may use after its ancestors' limits; null = no limit. */
  readonly tools: readonly string[] | null;
  readonly status: TaskStatus;
  readonly reason: TaskReason | undefined;
  /** `sync` as long as a call waits for its answer. */
  readonly mode: "sync" | "background";
  readonly error: string | undefined;
  readonly turns: readonly KeptTurn[];
  /** Told to it since its last answer. */
  readonly inbound: readonly string[];
  /** Whether its first words stand in its own conversation. */
  readonly isBriefed: boolean;
  /** Accepted, and not yet in its conversation; the oldest first. */
  readonly messages: readonly TaskMessage[];
  /** Written to while idle, and not awake yet. */
  readonly isCalled: boolean;
  readonly notice: NoticeDue | undefined;
  readonly usage: TaskUsage;
  readonly model: string | undefined;
  readonly latestIntent: string | undefined;
  /** The last few things it did, the newest last. */
  readonly recentActivity: readonly Activity[];
  /** Times are those of the log. */
  readonly createdAt: number;
  readonly changedAt: number;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Before its present turn. */
  readonly activeMs: number;
  readonly isRemoved: boolean;
}

export interface KeptTurn {
  readonly number: number;
  readonly message: string;
  readonly reason: TaskReason;
  /** One of the two: the words, or the file that has them. */
  readonly response: string;
  readonly responseFile?: string;
}

export interface TaskMessage {
  readonly id: string;
  readonly content: string;
  /** The agent that wrote it; nobody = a person, a program or the main agent. */
  readonly from?: string;
}

export interface Activity {
  readonly message: string;
  readonly timestamp: number;
}

/** A rest of the task that its parent has to hear of, once. */
export interface NoticeDue {
  readonly to: TaskStatus;
  readonly turn: number;
  /** `due`: nobody was told. `said`: it stands in the parent's conversation. `confirmed`: that is in the log, too. */
  readonly state: "due" | "said" | "confirmed";
  readonly by: "notice" | "read";
  /** The call by which the parent read it. Its failure makes the notice due again. */
  readonly readBy?: string;
}

/** What the agent itself used, without those it started. */
export interface TaskUsage {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** Null when the price of any call is unknown. */
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

/** Sums stay what a person would get with a pencil, whatever the order of adding. */
const addCosts = (a: number, b: number): number => Math.round((a + b) * 1e12) / 1e12;
