import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { Stamp } from "../../lib/stamp.ts";

/** Lets a session without messages wait for background agents. */
export class IdleMonitor {
  #woken: Deferred<void> | undefined;

  /** Makes waiters check again, because something may have changed. */
  wake(): void {
    this.#woken?.resolve();
  }

  /** Resolves when there is work, no agent is busy, or the time is up. */
  async waitForAgents(parts: {
    hasWork(): boolean;
    isBusy(): boolean;
    stamp: Stamp;
    limitMs: number | undefined;
  }): Promise<void> {
    const { hasWork, isBusy, stamp, limitMs } = parts;
    if (hasWork() || !isBusy()) return;
    const done = new AbortController();
    let isLate = false;
    const late = (): void => {
      isLate = true;
      this.wake();
    };
    if (limitMs !== undefined) stamp.sleep(limitMs, done.signal).then(late, () => undefined);
    while (!isLate && !hasWork() && isBusy()) {
      this.#woken = deferred();
      await this.#woken.promise;
    }
    done.abort();
  }
}
