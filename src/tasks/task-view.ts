/** Views of tasks for agents and users, derived from the fold. */
import { defined } from "../lib/defined.ts";
import type { TaskAnswer, TaskScope, TaskView } from "../tools/agents/task-port.ts";
import type { RunningTask } from "./running-tasks.ts";
import type { TaskFold } from "./task-fold.ts";
import { addUsage, noUsage, type StoredAnswer, type TaskRecord, type TaskUsage } from "./task-record.ts";
import { isFinal } from "./task-state.ts";

export type Relation = TaskView["relation"];

/** Returns the relation of `task` to `viewer` (undefined: the main agent). */
export function relationOf(fold: TaskFold, viewer: string | undefined, task: string): Relation {
  if (viewer === task) return "self";
  const parentId = fold.get(task)?.parentId;
  if (parentId === viewer) return "child";
  if (ancestorsOf(fold, task).includes(viewer)) return "descendant";
  return viewer !== undefined && fold.get(viewer)?.parentId === parentId ? "sibling" : "other";
}

/** Returns the ancestors, nearest first. The main agent (undefined) is last. */
function ancestorsOf(fold: TaskFold, task: string): readonly (string | undefined)[] {
  const ancestors: (string | undefined)[] = [];
  for (let record = fold.get(task); record; ) {
    ancestors.push(record.parentId);
    record = record.parentId === undefined ? undefined : fold.get(record.parentId);
  }
  return ancestors;
}

/** Returns the task and its descendants; children come before their parent. */
export function subtree(fold: TaskFold, task: TaskRecord): readonly TaskRecord[] {
  return [...fold.childrenOf(task.id).flatMap((child) => subtree(fold, child)), task];
}

export function usageOf(fold: TaskFold, task: TaskRecord): TaskUsage {
  return subtree(fold, task).reduce((sum, { usage }) => addUsage(sum, usage), noUsage);
}

/** Without a scope, the main agent sees every task; other agents see themselves, siblings and descendants. */
export function isInScope(relation: Relation, scope: TaskScope | undefined, viewer: string | undefined): boolean {
  if (scope === "all") return true;
  if (scope === "children") return relation === "child";
  if (scope === "siblings") return relation === "sibling";
  return viewer === undefined || relation !== "other";
}

export interface ViewPorts {
  readonly fold: TaskFold;
  readonly running: RunningTask | undefined;
  readonly viewer: string | undefined;
  readonly now: number;
  readonly waitingFor: string | undefined;
}

export function taskViewOf(task: TaskRecord, { fold, running, viewer, now, waitingFor }: ViewPorts): TaskView {
  const { usage, spec } = task;
  const startedAt = task.startedAt ?? task.createdAt;
  const last = running?.activity ?? task.recentActivity.at(-1);
  const lastAt = Math.max(last?.timestamp ?? 0, task.changedAt);
  const activeMs = task.activeMs + (task.status === "running" ? since(now, task.changedAt) : 0);
  return {
    id: task.id,
    ...defined({ parentId: task.parentId }),
    agentType: spec.agentName,
    description: spec.description,
    status: task.status,
    ...defined({ reason: task.reason }),
    mode: task.mode,
    relation: relationOf(fold, viewer, task.id),
    ...defined({ model: task.model }),
    startedAt,
    elapsedMs: since(task.endedAt ?? now, startedAt),
    activeMs,
    turns: task.answers.length,
    toolCalls: usage.toolCalls,
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: usage.costUsd,
    ...defined({ intent: task.latestIntent, lastActivity: last?.message }),
    quietMs: isFinal(task.status) ? 0 : since(now, lastAt),
    ...defined({ waitingFor }),
    unreadMessages: task.messages.length,
    ...defined({ mcpTask: running?.mcpTask, changes: task.sent?.changes }),
    ...(spec.worktree !== undefined && { worktree: ownTree(spec.worktree, task.id) }),
  };
}

/**
 * Returns the agent's worktree. The record has either that path, or the folder that holds one worktree per agent id.
 */
function ownTree(worktree: string, taskId: string): string {
  return /[\\/]worktrees$/.test(worktree) ? `${worktree}/${taskId}` : worktree;
}

/** Returns the answer with its complete text, read from a file if necessary. */
export async function wholeAnswer(
  answer: StoredAnswer,
  readLarge: (file: string) => Promise<string>,
): Promise<TaskAnswer> {
  const { number, message, response, responseFile } = answer;
  if (responseFile === undefined) return { number, message, response };
  try {
    return { number, message, response: await readLarge(responseFile) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { number, message, response: `[The answer is in ${responseFile}, which cannot be read: ${reason}]` };
  }
}

/** Returns a duration. Never negative, even if the clock jumps. */
const since = (now: number, then: number): number => Math.max(0, now - then);
