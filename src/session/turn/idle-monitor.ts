import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { Stamp } from "../../lib/stamp.ts";

/** How a session that has nothing left to say waits for agents in the background to say something. */
export class IdleMonitor {
  #stirred: Deferred<void> | undefined;

  /** Something may have changed: whoever waits looks again. */
  stir(): void {
    this.#stirred?.resolve();
  }

  /** Until there is something to do, nobody is busy any more, or the time is up. */
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
