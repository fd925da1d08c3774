/**
 * Closes sessions that nobody uses, and hands idle ones over to other processes that request them. Requests are heard
 * by watching the folders of the sessions. A timer runs only while a session can expire or cannot be watched.
 */
import type { FolderWatch } from "../../lib/node/watch-folder.ts";
import type { HandOver } from "../../runtime/sessions/hand-over.ts";
import type { LiveSession } from "./live-session.ts";

export interface UnusedSessionsPorts {
  readonly handOver: HandOver;
  readonly live: ReadonlyMap<string, LiveSession>;
  /** An unused session is closed after this time, also while clients are attached. */
  readonly idleMs: number | undefined;
  close(live: LiveSession): Promise<void>;
}

/** How long a session without clients stays in memory, so that they can return. */
const DETACHED_MS = 30 * 60_000;
const LOOK_MS = 500;

export class UnusedSessions {
  readonly #ports: UnusedSessionsPorts;
  readonly #watches = new Map<LiveSession, FolderWatch>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(ports: UnusedSessionsPorts) {
    this.#ports = ports;
  }

  /** Call when a session was opened or reopened, and when a client left one. */
  look(): void {
    if (this.#isClosed) return;
    for (const live of [...this.#ports.live.values()]) {
      this.#watch(live);
      if (performance.now() - live.touchedAt > this.#limit(live) && !live.isBusy) void this.#ports.close(live);
      else this.#answer(live);
    }
    this.#forget();
    if (!this.#needsTimer()) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    } else this.#timer ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
  }

  #limit(live: LiveSession): number {
    const isAttached = live.clients.attached.length > 0;
    return this.#ports.idleMs ?? (isAttached ? Number.POSITIVE_INFINITY : DETACHED_MS);
  }

  #needsTimer(): boolean {
    return [...this.#ports.live.values()].some(
      (live) => !this.#watches.has(live) || Number.isFinite(this.#limit(live)),
    );
  }

  #watch(live: LiveSession): void {
    if (this.#watches.has(live)) return;
    const lost = (): void => {
      this.#watches.delete(live);
      this.look();
    };
    const watch = this.#ports.handOver.watch(live.session.history.log, () => this.#answer(live), lost);
    if (watch) this.#watches.set(live, watch);
  }

  #forget(): void {
    for (const [live, watch] of this.#watches) {
      if (this.#ports.live.get(live.id) === live) continue;
      watch.close();
      this.#watches.delete(live);
    }
  }

  /** Hands an idle session over to the process that requests it. A busy one stays. */
  #answer(live: LiveSession): void {
    const { handOver } = this.#ports;
    const { log } = live.session.history;
    if (live.isHandedOver || live.reopening || this.#ports.live.get(live.id) !== live || !handOver.isAskedFor(log))
      return;
    if (live.isBusy) void handOver.refuse(log);
    else void live.handOver().then(() => handOver.answered(log));
  }
}
