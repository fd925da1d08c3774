/** Tasks that work without this process, and what happens to them when the session is closed. */
import type { RegistryPorts } from "./ports.ts";
import type { TaskFold } from "./task-fold.ts";
import type { TaskRecord } from "./task-record.ts";
import { isIdleOrEnded } from "./task-state.ts";

export class DetachableTasks {
  readonly #fold: TaskFold;
  readonly #runner: RegistryPorts["runner"];
  #isDetaching = false;
  #isClosing = false;

  constructor(fold: TaskFold, runner: RegistryPorts["runner"]) {
    this.#fold = fold;
    this.#runner = runner;
  }

  /** Whether the task is at work and continues without this process. */
  readonly continuesDetached = (task: TaskRecord): boolean =>
    !isIdleOrEnded(task.status) && this.#runner.continuesDetached?.(task) === true;

  /** The main agent's calls that wait for such tasks. */
  get calls(): readonly string[] {
    const waitedFor = this.#fold
      .childrenOf(undefined)
      .filter((task) => task.mode === "sync" && this.continuesDetached(task));
    return waitedFor.map(({ spec }) => spec.toolCallId);
  }

  /** From now on, aborting a call does not stop the task it waits for: closing the registry interrupts it. */
  close(): void {
    this.#isClosing = true;
  }

  /** From now on, aborting these calls does not stop the tasks. */
  detach(): void {
    this.#isDetaching = true;
  }

  isDetached(id: string): boolean {
    if (this.#isClosing) return true;
    const task = this.#fold.get(id);
    return this.#isDetaching && task !== undefined && this.continuesDetached(task);
  }
}
