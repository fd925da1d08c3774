import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { Stamp } from "../../lib/stamp.ts";

/** Lets a session without messages wait for background agents. */
export class IdleMonitor {
  #stirred: Deferred<void> | undefined;

  /** Makes waiters check again, because something may have changed. */
  stir(): void {
    this.#stirred?.resolve();
  }

  /** Resolves when there is work, no agent is busy, or the time is up. */
  async settle(what: {
    hasWork(): boolean;
    isBusy(): boolean;
    stamp: Stamp;
    limitMs: number | undefined;
  }): Promise<void> {
    const { hasWork, isBusy, stamp, limitMs } = what;
    if (hasWork() || !isBusy()) return;
    const done = new AbortController();
    let isLate = false;
    const late = (): void => {
      isLate = true;
      this.stir();
    };
    if (limitMs !== undefined) stamp.sleep(limitMs, done.signal).then(late, () => undefined);
    while (!isLate && !hasWork() && isBusy()) {
      this.#stirred = deferred();
      await this.#stirred.promise;
    }
    done.abort();
  }
}
