/**
 * Closes sessions that nobody uses, and hands idle ones over to other processes that request them. Requests are heard
 * by watching the folders of the sessions. A timer runs only while a session can expire or cannot be watched.
 */
import type { FolderWatch } from "../../lib/node/watch-folder.ts";
import type { HandOver } from "../../runtime/sessions/hand-over.ts";
import type { HostedSession } from "./hosted-session.ts";

export interface UnusedSessionsPorts {
  readonly handOver: HandOver;
  readonly hosted: ReadonlyMap<string, HostedSession>;
  /** An unused session is closed after this time, also while clients are attached. */
  readonly idleMs: number | undefined;
  close(hosted: HostedSession): Promise<void>;
}

/** How long a session without clients stays in memory, so that they can return. */
const DETACHED_MS = 30 * 60_000;
const LOOK_MS = 500;

export class UnusedSessions {
  readonly #ports: UnusedSessionsPorts;
  readonly #watches = new Map<HostedSession, FolderWatch>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(ports: UnusedSessionsPorts) {
    this.#ports = ports;
  }

  /** Call when a session was opened or reopened, and when a client left one. */
  look(): void {
    if (this.#isClosed) return;
    for (const hosted of [...this.#ports.hosted.values()]) {
      this.#watch(hosted);
      if (performance.now() - hosted.touchedAt > this.#limit(hosted) && !hosted.isBusy) void this.#ports.close(hosted);
      else this.#answer(hosted);
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

  #limit(hosted: HostedSession): number {
    const isAttached = hosted.clients.attached.length > 0;
    return this.#ports.idleMs ?? (isAttached ? Number.POSITIVE_INFINITY : DETACHED_MS);
  }

  #needsTimer(): boolean {
    return [...this.#ports.hosted.values()].some(
      (hosted) => !this.#watches.has(hosted) || Number.isFinite(this.#limit(hosted)),
    );
  }

  #watch(hosted: HostedSession): void {
    if (this.#watches.has(hosted)) return;
    const lost = (): void => {
      this.#watches.delete(hosted);
      this.look();
    };
    const watch = this.#ports.handOver.watch(hosted.session.record.log, () => this.#answer(hosted), lost);
    if (watch) this.#watches.set(hosted, watch);
  }

  #forget(): void {
    for (const [hosted, watch] of this.#watches) {
      if (this.#ports.hosted.get(hosted.id) === hosted) continue;
      watch.close();
      this.#watches.delete(hosted);
    }
  }

  /** Hands an idle session over to the process that requests it. A busy one stays. */
  #answer(hosted: HostedSession): void {
    const { handOver } = this.#ports;
    const { log } = hosted.session.record;
    if (
      hosted.isHandedOver ||
      hosted.reopening ||
      this.#ports.hosted.get(hosted.id) !== hosted ||
      !handOver.isAskedFor(log)
    )
      return;
    if (hosted.isBusy) void handOver.refuse(log);
    else void hosted.handOver().then(() => handOver.answered(log));
  }
}
