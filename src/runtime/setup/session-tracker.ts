/**
 * Updates the session store for an open session: shortly after it becomes idle, and when it closes. Updates missed by a
 * crash or a very short session are read from the log with the next query of the store.
 */
import type { SessionEvent } from "../../protocol/event.ts";
import type { Session } from "../../session/session.ts";
import type { SessionRows } from "../../store/index/session-rows.ts";
import type { Store } from "../../store/store.ts";
import { summarise } from "../../store/summary.ts";
import type { PastSessions } from "../knowledge/past-sessions.ts";

export interface SessionTracker {
  /** Resolves when all events so far are in the session store. */
  flush(): Promise<void>;
  /** Makes the last update, unless the session was too short. */
  close(): Promise<void>;
}

interface TrackerParts {
  readonly past: Pick<PastSessions, "update">;
  readonly store: Pick<Store, "revision">;
  readonly idleMs?: number;
  readonly worthMs?: number;
}

const IDLE_MS = 500;
/** Shorter sessions skip the last update. Loading and opening the store takes up to a fiftieth of this. */
const WORTH_MS = 1_500;

export function trackSession(session: Session, parts: TrackerParts): SessionTracker {
  const { past, store, idleMs = IDLE_MS, worthMs = WORTH_MS } = parts;
  const began = performance.now();
  let rows: SessionRows | undefined;
  let turns = 0;
  /** Stored events since the last update; undefined if the next one starts from the first event. */
  let added: SessionEvent[] | undefined;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> = Promise.resolve();

  async function update(): Promise<void> {
    if (!session.events.some(({ type }) => type === "user.message")) return;
    // Read before the events: the rows must have at least what the log had at this revision.
    const revision = await store.revision(session.id);
    if (revision === undefined) return;
    const { SessionRows: Rows } = await import("../../store/index/session-rows.ts");
    const isAnew = added === undefined;
    // The full history of a long session is only in its log; the next query reads it there.
    if (isAnew && !session.history.past.isComplete) return;
    const events = added ?? session.events.slice(0, session.history.past.toldCount);
    if (events.length === 0) return;
    added = [];
    if (isAnew || !rows) [rows, turns] = [new Rows(), 0];
    for (const event of events) {
      rows.apply(event);
      if (event.type === "assistant.turn_start") turns++;
    }
    const updatedAt = session.events.at(-1)?.timestamp ?? "";
    const summary = { ...summarise(session.events, session.id, updatedAt), turns };
    try {
      await past.update({ summary, revision, rows: rows.take(), extent: isAnew ? "all" : "added" });
    } catch (error) {
      added = undefined;
      throw error;
    }
  }

  /** Updates one after the other. After a failed write, the next query repairs the store. */
  function soon(): Promise<void> {
    clearTimeout(timer);
    working = working.then(update).catch(() => undefined);
    return working;
  }

  const stop = session.subscribe((event) => {
    // After a rewind, rows of removed events must be deleted.
    if (event.type === "troupe.rewound") added = undefined;
    else if (!event.ephemeral) added?.push(event);
    if (event.type !== "session.idle") return;
    clearTimeout(timer);
    timer = setTimeout(() => void soon(), idleMs).unref();
  });

  return {
    flush: soon,
    async close() {
      stop();
      clearTimeout(timer);
      if (added !== undefined || performance.now() - began >= worthMs) await soon();
    },
  };
}
