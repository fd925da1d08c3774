import type { Stamp } from "../lib/stamp.ts";
import type { WaitEnd } from "./ports.ts";
import type { TaskRecord } from "./task-record.ts";
import { isFinal } from "./task-state.ts";

/** Waiters for conditions. Each condition is checked again when its task changes. */
export class Waiters {
  readonly #stamp: Stamp;
  readonly #looks = new Map<string, Set<() => void>>();

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  wake(id: string): void {
    for (const look of [...(this.#looks.get(id) ?? [])]) look();
  }

  /**
   * Resolves with the first defined result of `look`, or undefined after `timeoutMs`. Rejects when aborted, which does
   * not affect other waiters.
   */
  until<T>(
    id: string,
    look: () => T | undefined,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
  ): Promise<T | undefined> {
    const { timeoutMs, signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const found = look();
      if (found !== undefined || timeoutMs <= 0) return resolve(found);
      const timer = new AbortController();
      const leave = (): void => {
        this.#leave(id, onChange);
        signal?.removeEventListener("abort", onAbort);
        timer.abort();
      };
      const onChange = (): void => {
        const answer = look();
        if (answer === undefined) return;
        leave();
        resolve(answer);
      };
      const onAbort = (): void => {
        leave();
        reject(signal?.reason);
      };
      const looks = this.#looks.get(id);
      if (looks) looks.add(onChange);
      else this.#looks.set(id, new Set([onChange]));
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#stamp.sleep(Math.min(timeoutMs, MAX_TIMER_MS), timer.signal).then(
        () => {
          leave();
          resolve(look());
        },
        () => undefined, // answered or aborted before
      );
    });
  }

  #leave(id: string, look: () => void): void {
    const looks = this.#looks.get(id);
    looks?.delete(look);
    if (looks?.size === 0) this.#looks.delete(id);
  }
}

/** The maximum delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns why a wait for the task is over, or undefined. */
export function waitEnd(
  task: TaskRecord,
  {
    isBusy,
    wasSync,
    sinceAnswer,
  }: { readonly isBusy: boolean; readonly wasSync: boolean; readonly sinceAnswer: number | undefined },
): WaitEnd | undefined {
  if (isFinal(task.status)) return "ended";
  if (!isBusy) return "idle";
  if (sinceAnswer !== undefined && task.answers.length > sinceAnswer) return "answered";
  return wasSync && task.mode === "background" ? "promoted" : undefined;
}
