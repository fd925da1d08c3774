import { setMaxListeners } from "node:events";
import type { McpTaskProgress } from "../tools/agents/task-port.ts";
import type { Activity } from "./task-record.ts";

/** State of a task that lives only in this process. */
export interface RunningTask {
  readonly stop: AbortController;
  /** The current run, from waiting for a slot to becoming idle. */
  run: Promise<void> | undefined;
  /** Messages passed to the runner in this turn. */
  readonly passed: Set<string>;
  /** The task is being stopped: later results of its runner are ignored. */
  isStopping: boolean;
  /** The task is idle only briefly and resumes at once with new messages. */
  isWaking: boolean;
  /** The runner may hold resources. */
  isHolding: boolean;
  activity: Activity | undefined;
  mcpTask: McpTaskProgress | undefined;
  waitingFor: string | undefined;
}

export class RunningTasks {
  readonly #tasks = new Map<string, RunningTask>();
  readonly #queues = new Map<string, Promise<unknown>>();

  get(id: string): RunningTask | undefined {
    return this.#tasks.get(id);
  }

  of(id: string): RunningTask {
    const found = this.#tasks.get(id);
    if (found) return found;
    const stop = new AbortController();
    setMaxListeners(0, stop.signal); // one listener for each concurrent call of the agent
    const made: RunningTask = {
      stop,
      run: undefined,
      passed: new Set(),
      isStopping: false,
      isWaking: false,
      isHolding: false,
      activity: undefined,
      mcpTask: undefined,
      waitingFor: undefined,
    };
    this.#tasks.set(id, made);
    return made;
  }

  /** Drops the state of a task whose end is in the log. */
  forget(id: string): void {
    this.#tasks.delete(id);
  }

  all(): readonly (readonly [string, RunningTask])[] {
    return [...this.#tasks];
  }

  /** Runs decisions about one task one at a time, in the order requested. */
  runExclusive<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(id);
    const result = before ? before.then(work) : work();
    const done = result.then(
      () => undefined,
      () => undefined,
    );
    this.#queues.set(id, done);
    void done.then(() => {
      if (this.#queues.get(id) === done) this.#queues.delete(id);
    });
    return result;
  }
}
