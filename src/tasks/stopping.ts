/** Stops tasks and their descendants, deepest first, so that no task outlives its parent. */

import { DETACHED } from "./ports.ts";
import type { RunningTasks } from "./running-tasks.ts";
import type { TaskFold } from "./task-fold.ts";
import type { TaskRecord } from "./task-record.ts";
import { GRACE_MS, type TaskRuns } from "./task-runs.ts";
import { isFinal, isIdleOrEnded, type TaskSignal } from "./task-state.ts";
import { subtree } from "./task-view.ts";

export interface StoppingParts {
  readonly fold: TaskFold;
  readonly runningTasks: RunningTasks;
  readonly taskRuns: TaskRuns;
  /** Pending starts whose task is not in the log yet, by parent. */
  readonly starting: ReadonlyMap<string | undefined, ReadonlySet<Promise<unknown>>>;
  /** Whether the end of the process does not end the task. */
  continuesDetached(task: TaskRecord): boolean;
}

/** `stopped`: ends the tasks for good. `process_gone`: interrupts them as the end of the process would. */
type StopKind = Extract<TaskSignal["kind"], "stopped" | "process_gone">;

/**
 * Resolves when all ends are in the log. A runner that does not stop within the grace period is abandoned and its later
 * results are ignored.
 */
export async function stopTasks(roots: readonly TaskRecord[], kind: StopKind, parts: StoppingParts): Promise<void> {
  const stopped = await abortAll(roots, kind, parts);
  const staysAtWork = (task: TaskRecord): boolean => kind === "process_gone" && parts.continuesDetached(task);
  const { taskRuns, runningTasks } = parts;
  await taskRuns.within(GRACE_MS, async () => {
    await Promise.all(stopped.map((task) => finish(task, parts)));
  });
  for (const task of stopped) void taskRuns.release(task); // abandoned runners are asked too, but not awaited
  const depths = [...new Set(stopped.map(({ spec }) => spec.depth))].sort((a, b) => b - a);
  for (const depth of depths) {
    const level = stopped.filter((task) => task.spec.depth === depth && !staysAtWork(task));
    await Promise.all(level.map((task) => runningTasks.runExclusive(task.id, () => taskRuns.change(task, { kind }))));
  }
}

async function finish(task: TaskRecord, { runningTasks, taskRuns }: StoppingParts): Promise<void> {
  await runningTasks.get(task.id)?.run;
  await taskRuns.release(task);
}

/** Aborts all tasks of the subtrees, including those that are just starting. */
async function abortAll(
  roots: readonly TaskRecord[],
  kind: StopKind,
  { fold, runningTasks, starting, continuesDetached }: StoppingParts,
): Promise<readonly TaskRecord[]> {
  for (;;) {
    const tasks = roots.flatMap((root) => subtree(fold, root));
    const isMeant = ({ status }: TaskRecord): boolean =>
      kind === "stopped" ? !isFinal(status) : !isIdleOrEnded(status);
    const meant = [...new Set(tasks)].filter(isMeant);
    for (const task of meant) {
      const running = runningTasks.of(task.id);
      running.isStopping = true;
      running.stop.abort(kind === "process_gone" && continuesDetached(task) ? DETACHED : STOPPED);
    }
    const starts = meant.flatMap(({ id }) => [...(starting.get(id) ?? [])]);
    if (starts.length === 0) return meant;
    await Promise.allSettled(starts);
  }
}

const STOPPED = new DOMException("The agent was stopped.", "AbortError");
