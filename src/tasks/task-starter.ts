/** Starts tasks: checks, names, requests a slot, writes to the log, then activates. */
import { TroupeError } from "../protocol/errors.ts";
import type { EventData } from "../protocol/event.ts";
import type { TaskJournal } from "./journal.ts";
import { checkStart } from "./new-task.ts";
import type { NewTask, RegistryPorts } from "./ports.ts";
import type { RunningTasks } from "./running-tasks.ts";
import type { Slots } from "./slots.ts";
import type { TaskFold } from "./task-fold.ts";
import { nameTask } from "./task-names.ts";
import type { TaskRuns } from "./task-runs.ts";

interface TaskStarterParts {
  readonly options: RegistryPorts;
  readonly fold: TaskFold;
  readonly journal: TaskJournal;
  readonly slots: Slots;
  readonly runningTasks: RunningTasks;
}

export class TaskStarter {
  readonly #parts: TaskStarterParts;
  readonly #taskRuns: TaskRuns;
  /** Reserved ids whose task is not in the log yet or could not be written. */
  readonly #reserved = new Set<string>();
  /** Starts that failed because they could not be written. */
  readonly #refused = new Set<string>();
  readonly #underWay = new Map<string | undefined, Set<Promise<unknown>>>();

  constructor(parts: TaskStarterParts, taskRuns: TaskRuns) {
    this.#parts = parts;
    this.#taskRuns = taskRuns;
  }

  /** Pending starts whose task is not in the log yet, by parent. */
  get underWay(): ReadonlyMap<string | undefined, ReadonlySet<Promise<unknown>>> {
    return this.#underWay;
  }

  /**
   * Starts a task and resolves when it is in the log. It runs as soon as a slot is free. Throws a `TroupeError` if it
   * must not start.
   */
  async start(task: NewTask): Promise<{ readonly id: string; readonly queued: boolean }> {
    const { parentId } = task;
    const { fold, slots, runningTasks, options } = this.#parts;
    const isParentStopping = parentId !== undefined && runningTasks.get(parentId)?.isStopping === true;
    const starting = [...this.#reserved].filter((id) => fold.get(id) === undefined).length;
    const checked = checkStart(task, {
      fold,
      limits: options.limits,
      isFull: slots.isFull,
      isParentStopping,
      starting,
    });
    const id = nameTask(task.name, (taken) => fold.get(taken) !== undefined || this.#reserved.has(taken));
    this.#reserved.add(id);
    const running = runningTasks.of(id);
    const slot = slots.take(id, running.stop.signal);
    slot.catch(() => undefined); // stopped before it began
    const queued = !slots.holds(id);
    const start = this.#store({ ...checked, taskId: id }).then(() => {
      const made = fold.get(id);
      if (!made) throw new TroupeError("failed", `The agent "${id}" was written and is not there.`);
      this.#reserved.delete(id);
      this.#taskRuns.start(made, slot);
    });
    this.#track(parentId, start);
    await start.catch((error: unknown) => {
      running.stop.abort();
      slots.release(id);
      runningTasks.forget(id);
      throw error;
    });
    return { id, queued };
  }

  /** Whether this start was reported as failed but was written later. Returns true at most once. */
  isUnwanted(id: string): boolean {
    return this.#refused.delete(id);
  }

  #store(data: EventData<"troupe.task_created">): Promise<void> {
    return this.#parts.journal
      .offer(
        "troupe.task_created",
        data,
        (event) => event.type === "troupe.task_created" && event.data.taskId === data.taskId,
      )
      .catch((error: unknown) => {
        this.#refused.add(data.taskId);
        throw error;
      });
  }

  #track(parentId: string | undefined, start: Promise<unknown>): void {
    const starts = this.#underWay.get(parentId) ?? new Set();
    this.#underWay.set(parentId, starts.add(start));
    const done = (): void => {
      starts.delete(start);
      if (starts.size === 0 && this.#underWay.get(parentId) === starts) this.#underWay.delete(parentId);
    };
    start.then(done, done);
  }
}
