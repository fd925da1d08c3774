import { setMaxListeners } from "node:events";
import type { McpTaskProgress } from "../tools/agents/tasks.ts";
import type { Activity } from "./task-record.ts";

/** What of a task cannot be stored: it lives in one process. */
export interface RunningTask {
  readonly stop: AbortController;
  /** Its present turn, from the wait for a place to its rest. */
  run: Promise<void> | undefined;
  /** Messages given to the runner in this turn. */
  readonly handed: Set<string>;
  /** It is being ended: whatever its runner still says counts for nothing. */
  isStopping: boolean;
  /** It rests only to go on at once with what it was told meanwhile. */
  isWaking: boolean;
  /** Its runner may hold something. */
  isHolding: boolean;
  activity: Activity | undefined;
  mcpTask: McpTaskProgress | undefined;
  waitingFor: string | undefined;
}

export class RunningTasks {
  readonly #lives = new Map<string, RunningTask>();
  readonly #queues = new Map<string, Promise<unknown>>();

  get(id: string): RunningTask | undefined {
    return this.#lives.get(id);
  }

  of(id: string): RunningTask {
    const found = this.#lives.get(id);
    if (found) return found;
    const stop = new AbortController();
    setMaxListeners(0, stop.signal); // as many calls as the agent has under way
    const made: RunningTask = {
      stop,
      run: undefined,
      handed: new Set(),
      isStopping: false,
      isWaking: false,
      isHolding: false,
      activity: undefined,
      mcpTask: undefined,
      waitingFor: undefined,
    };
    this.#lives.set(id, made);
    return made;
  }

  /** Its end is in the log. */
  forget(id: string): void {
    this.#lives.delete(id);
  }

  all(): readonly (readonly [string, RunningTask])[] {
    return [...this.#lives];
  }

  /** Decisions about one task are made one at a time, in the order asked for. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
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
