/** One task as programs see it: its complete record in the wire's format. */
import { defined } from "../lib/defined.ts";
import type { McpTaskProgress, TaskReason, TaskStatus } from "../tools/agents/task-port.ts";
import type { RunningTask } from "./running-tasks.ts";
import type { Activity, StoredAnswer, TaskMessage, TaskRecord } from "./task-record.ts";
import { isFinal, isIdleOrEnded } from "./task-state.ts";

export interface TaskSnapshot {
  readonly id: string;
  readonly type: "agent";
  /** The agent that started it, or `main`. */
  readonly ownerId: string;
  readonly parentId?: string;
  /** The call that started it. */
  readonly toolCallId: string;
  readonly agentType: string;
  readonly displayName: string;
  readonly description: string;
  /** The last message that it received. */
  readonly prompt: string;
  readonly modelOverride?: string;
  readonly resolvedModel?: string;
  readonly executionMode: "sync" | "background";
  readonly canPromoteToBackground: boolean;
  readonly status: TaskStatus;
  readonly reason?: TaskReason;
  /** Accepted messages that are not delivered yet. */
  readonly messageQueue: readonly TaskMessage[];
  readonly turnHistory: readonly StoredAnswer[];
  readonly latestResponse?: string;
  readonly result?: string;
  readonly error?: string;
  readonly progress: TaskProgress;
  readonly startedAt: number;
  readonly completedAt?: number;
  readonly idleSince?: number;
  /** Active time before the current answer, and the start of that answer. */
  readonly activeTimeMs: number;
  readonly activeStartedAt?: number;
  /** Ends the task and its descendants. Returns false if there is nothing to end. */
  abort(): Promise<boolean>;
}

interface TaskProgress {
  readonly turns: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly tokens: number;
  readonly costUsd: number | null;
  /** Its most recently stated intention. */
  readonly latestIntent?: string;
  /** Its last few activities, newest last. */
  readonly recentActivity: readonly Activity[];
  readonly mcpTask?: McpTaskProgress;
}

export function snapshotOf(
  task: TaskRecord,
  { running, abort }: { running: RunningTask | undefined; abort: TaskSnapshot["abort"] },
): TaskSnapshot {
  const { spec, parentId, answers, status } = task;
  const latest = answers.at(-1)?.response;
  return {
    id: task.id,
    type: "agent",
    ownerId: parentId ?? "main",
    ...defined({ parentId }),
    toolCallId: spec.toolCallId,
    agentType: spec.agentName,
    displayName: spec.agentDisplayName,
    description: spec.description,
    prompt: task.inbound.at(-1) ?? answers.at(-1)?.message ?? spec.prompt,
    ...defined({ modelOverride: spec.model, resolvedModel: task.model }),
    executionMode: task.mode,
    canPromoteToBackground: task.mode === "sync" && parentId === undefined && !isIdleOrEnded(status),
    status,
    ...defined({ reason: task.reason }),
    messageQueue: task.messages,
    turnHistory: answers,
    ...defined({ latestResponse: latest }),
    ...(status === "completed" && latest !== undefined && { result: latest }),
    ...defined({ error: task.error }),
    progress: progressOf(task, running),
    startedAt: task.startedAt ?? task.createdAt,
    ...(isFinal(status) && task.endedAt !== undefined && { completedAt: task.endedAt }),
    ...(status === "idle" && { idleSince: task.changedAt }),
    activeTimeMs: task.activeMs,
    ...(status === "running" && { activeStartedAt: task.changedAt }),
    abort,
  };
}

function progressOf(
  { answers, usage, latestIntent, recentActivity }: TaskRecord,
  running: RunningTask | undefined,
): TaskProgress {
  return {
    turns: answers.length,
    modelCalls: usage.calls,
    toolCalls: usage.toolCalls,
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: usage.costUsd,
    ...defined({ latestIntent }),
    recentActivity,
    ...defined({ mcpTask: running?.mcpTask }),
  };
}
