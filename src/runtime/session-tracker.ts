/**
 * Keeps the session store up with a session that is open, when it has nothing better to do: a moment after it has
 * become idle, and when it is closed. Whatever is missed, by a kill or because a session was over in no time, is read
 * from its log by whoever next asks for the past.
 */
import type { Session } from "../session/session.ts";
import type { SessionRows } from "../store/session-rows.ts";
import type { Store } from "../store/store.ts";
import { summarise } from "../store/summary.ts";
import type { PastSessions } from "./past-sessions.ts";

export interface SessionTracker {
  /** All that was said so far is in the session store when this resolves. */
  flush(): Promise<void>;
  /** The last update, unless the session was too short to be worth the wait. */
  close(): Promise<void>;
}

interface TrackerParts {
  readonly past: Pick<PastSessions, "update">;
  readonly store: Pick<Store, "revision">;
  readonly idleMs?: number;
  readonly worthMs?: number;
}

const IDLE_MS = 500;
/** Loading and opening the store takes up to a fiftieth of this; nobody who asked a quick question waits for it. */
const WORTH_MS = 1_500;

export function trackSession(session: Session, parts: TrackerParts): SessionTracker {
  const { past, store, idleMs = IDLE_MS, worthMs = WORTH_MS } = parts;
  const began = performance.now();
  let rows: SessionRows | undefined;
  let taken = 0;
  let isFirst = true;
  let lastTaken: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> = Promise.resolve();

  async function update(): Promise<void> {
    const { events } = session;
    // Whatever was taken and is not there any more was taken back: then all of it is told anew.
    const isAnew = isFirst || (taken > 0 && events[taken - 1]?.id !== lastTaken);
    if (!isAnew && taken === events.length) return;
    if (!events.some(({ type }) => type === "user.message")) return;
    const revision = await store.revision(session.id);
    if (revision === undefined) return;
    const { SessionRows: Rows } = await import("../store/session-rows.ts");
    if (isAnew) taken = 0;
    if (isAnew || !rows) rows = new Rows();
    for (; taken < events.length; taken++) {
      const event = events[taken];
      if (event) rows.apply(event);
    }
    lastTaken = events[taken - 1]?.id;
    const updatedAt = events.at(-1)?.timestamp ?? "";
    isFirst = true; // until it is written
    const summary = summarise(events, session.id, updatedAt);
    await past.update({ summary, revision, rows: rows.take(), extent: isAnew ? "all" : "added" });
    isFirst = false;
  }

  /** One after the other. A store that cannot be written is made good by the next who reads it. */
  function soon(): Promise<void> {
    clearTimeout(timer);
    working = working.then(update).catch(() => undefined);
    return working;
  }

  const stop = session.subscribe(({ type }) => {
    if (type !== "session.idle") return;
    clearTimeout(timer);
    timer = setTimeout(() => void soon(), idleMs).unref();
  });

  return {
    flush: soon,
    async close() {
      stop();
      clearTimeout(timer);
      if (!isFirst || performance.now() - began >= worthMs) await soon();
    },
  };
}
