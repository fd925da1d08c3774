/**
 * Updates the session store for an open session: shortly after it becomes idle, and when it closes. Updates missed by a
 * crash or a very short session are read from the log with the next query of the store.
 */
import type { SessionEvent } from "../../protocol/event.ts";
import type { Session } from "../../session/session.ts";
import type { IndexRows } from "../../store/index/session-rows.ts";
import type { Store } from "../../store/store.ts";
import { summaryOfEvents } from "../../store/summary.ts";
import type { PastSessions } from "../knowledge/past-sessions.ts";

interface TrackerParts {
  readonly past: Pick<PastSessions, "update">;
  readonly store: Pick<Store, "revision">;
  readonly idleMs?: number;
  readonly worthMs?: number;
}

const IDLE_MS = 500;
/** Shorter sessions skip the last update. Loading and opening the store takes up to a fiftieth of this. */
const WORTH_MS = 1_500;

export class SessionTracker {
  readonly #session: Session;
  readonly #parts: TrackerParts;
  readonly #began = performance.now();
  readonly #stop: () => void;
  #rows: IndexRows | undefined;
  #turns = 0;
  /** Stored events since the last update; undefined if the next one starts from the first event. */
  #added: SessionEvent[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(session: Session, parts: TrackerParts) {
    this.#session = session;
    this.#parts = parts;
    this.#stop = session.subscribe((event) => this.#onEvent(event));
  }

  /** Resolves when all events so far are in the session store. After a failed write, the next query repairs it. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#working = this.#working.then(() => this.#update()).catch(() => undefined);
    return this.#working;
  }

  /** Makes the last update, unless the session was too short. */
  async close(): Promise<void> {
    this.#stop();
    clearTimeout(this.#timer);
    const isWorth = performance.now() - this.#began >= (this.#parts.worthMs ?? WORTH_MS);
    if (this.#added !== undefined || isWorth) await this.flush();
  }

  #onEvent(event: SessionEvent): void {
    // After a rewind, rows of removed events must be deleted.
    if (event.type === "troupe.rewound") this.#added = undefined;
    else if (!event.ephemeral) this.#added?.push(event);
    if (event.type !== "session.idle") return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), this.#parts.idleMs ?? IDLE_MS).unref();
  }

  async #update(): Promise<void> {
    const { id, events: all, record } = this.#session;
    const { past, store } = this.#parts;
    if (!all.some(({ type }) => type === "user.message")) return;
    // Read before the events: the rows must have at least what the log had at this revision.
    const revision = await store.revision(id);
    if (revision === undefined) return;
    const { IndexRows: Rows } = await import("../../store/index/session-rows.ts");
    const isAnew = this.#added === undefined;
    // The full history of a long session is only in its log; the next query reads it there.
    if (isAnew && !record.past.isComplete) return;
    const events = this.#added ?? this.#session.events.slice(0, record.past.deliveredCount);
    if (events.length === 0) return;
    this.#added = [];
    if (isAnew || !this.#rows) [this.#rows, this.#turns] = [new Rows(), 0];
    for (const event of events) {
      this.#rows.apply(event);
      if (event.type === "assistant.turn_start") this.#turns++;
    }
    const updatedAt = this.#session.events.at(-1)?.timestamp ?? "";
    const summary = { ...summaryOfEvents(this.#session.events, id, updatedAt), turns: this.#turns };
    try {
      await past.update({ summary, revision, rows: this.#rows.take(), extent: isAnew ? "all" : "added" });
    } catch (error) {
      this.#added = undefined;
      throw error;
    }
  }
}
