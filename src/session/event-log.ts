import { defined } from "../lib/defined.ts";
import type { Redactor } from "../lib/redact/redact.ts";
import { createEventRedactor, type EventRedactor } from "../lib/redact/redact-event.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { EventData, EventType, SessionEvent } from "../protocol/event.ts";
import { isBarrier, isEphemeral } from "../protocol/event-kind.ts";
import type { SessionLog } from "../store/store.ts";
import { condense, isCompaction } from "./compaction/condense.ts";

export type Listener = (event: SessionEvent) => void;

/** The events of a session's log by position (0 = the first). */
export interface EventPast {
  readonly count: number;
  /** The number of events that listeners have received. All of these can be read. */
  readonly deliveredCount: number;
  /** The number of events from before this process opened the session. */
  readonly inherited: number;
  /** Whether `events` contains all of them. */
  readonly isComplete: boolean;
  /** Returns the events from position `from` up to, but not including, `to`. */
  read(from: number, to: number): Promise<readonly SessionEvent[]>;
}

interface Collection {
  readonly events: SessionEvent[];
  matches(event: SessionEvent): boolean;
}

const PAGE_EVENTS = 500;

/** Yields all events that listeners have received, oldest first. Reads those that are not in memory page by page. */
export async function* eventsOf({
  events,
  record: { past },
}: {
  readonly events: readonly SessionEvent[];
  readonly record: { readonly past: EventPast };
}): AsyncGenerator<SessionEvent> {
  const { isComplete, deliveredCount } = past;
  if (isComplete) {
    yield* events.slice(0, deliveredCount);
    return;
  }
  for (let from = 0; from < deliveredCount; from += PAGE_EVENTS) {
    yield* await past.read(from, Math.min(deliveredCount, from + PAGE_EVENTS));
  }
}

/**
 * The path of every event of a session: stamped, chained, folded, stored, then passed to listeners. Listeners receive
 * events in the order of emission. They receive a stored event only once it is as durable as its type requires.
 */
export class EventLog {
  readonly #store: SessionLog;
  readonly #stamp: Stamp;
  readonly #fold: (event: SessionEvent) => void;
  readonly #onListenerDefect: (error: unknown) => void;
  readonly #redactor: EventRedactor | undefined;
  readonly #listeners = new Set<Listener>();
  /** The events that still matter: a long session does not hold its whole history in memory. */
  #events: SessionEvent[];
  /** Number of events in the log's view that are no longer in `#events`. */
  #condensed: number;
  /** Length of `#events` from which it is condensed. */
  #condenseAt: number;
  readonly #minCondensed: number;
  #isComplete: boolean;
  #isCompacted: boolean;
  /** True after a rewind: the hidden events are unknown here, so the next opening makes the snapshot. */
  #isRewound = false;
  /** Lists of stored events that callers need. */
  readonly #collecting = new Set<Collection>();
  /** Emitted events that are not passed on yet. `ready`: durable or ephemeral. `lost`: the write failed. */
  readonly #waiting: { event: SessionEvent; state: "pending" | "ready" | "lost" }[] = [];
  /** Events that are being passed on: the first to some listeners already, the rest to none. */
  readonly #delivering: SessionEvent[] = [];
  /** In memory, but not in the log. */
  #lost: SessionEvent[] = [];
  #broken = false;
  /** The running repair. Concurrent callers share it. */
  #repairing: Promise<void> | undefined;
  #lastId: string | null;

  constructor(options: {
    store: SessionLog;
    stamp: Stamp;
    fold: (event: SessionEvent) => void;
    /** Called when a listener throws. The session and other listeners are not affected. */
    onListenerDefect: (error: unknown) => void;
    /** Removes secrets from events. This is the only place: before the log, the index and the listeners. */
    redactor?: Redactor | undefined;
    /** Fewer events than this are never condensed. */
    minCondensed?: number | undefined;
  }) {
    this.#redactor = options.redactor && createEventRedactor(options.redactor);
    this.#onListenerDefect = options.onListenerDefect;
    this.#store = options.store;
    this.#stamp = options.stamp;
    this.#fold = options.fold;
    this.#events = [...options.store.events];
    this.#condensed = options.store.count - this.#events.length;
    this.#isComplete = this.#condensed === 0 && this.#events.every(({ type }) => type !== "troupe.agent_state");
    this.#minCondensed = options.minCondensed ?? MIN_CONDENSED;
    this.#condenseAt = Math.max(this.#minCondensed, 2 * this.#events.length);
    this.#isCompacted = this.#events.some(isCompaction);
    this.#lastId = this.#events.at(-1)?.id ?? null;
  }

  /** Events that still matter: all of them in a short session, the result of `condense` in a long one. */
  get events(): readonly SessionEvent[] {
    return this.#events;
  }

  /** All events of the log's current view, by position. */
  get past(): EventPast {
    return {
      count: this.#count,
      deliveredCount: this.#count - this.#undeliveredEvents().size,
      inherited: this.#store.count,
      isComplete: this.#isComplete,
      read: async (from, to) =>
        this.#isComplete ? this.#events.slice(Math.max(0, from), Math.max(0, to)) : this.#store.page(from, to),
    };
  }

  get #count(): number {
    return this.#condensed + this.#events.length;
  }

  /** Collects the events that are stored from now on and that `matches` accepts, until stopped. */
  collect(matches: Collection["matches"]): { readonly events: readonly SessionEvent[]; stop(): void } {
    const collection: Collection = { events: [], matches };
    this.#collecting.add(collection);
    return { events: collection.events, stop: () => this.#collecting.delete(collection) };
  }

  /** Whether every emitted event is in the log. */
  get #isWritten(): boolean {
    return this.#waiting.length === 0 && this.#lost.length === 0 && !this.#broken;
  }

  /** Stores a snapshot, so that the next opening need not read the whole log. */
  async snapshot(): Promise<void> {
    if (!this.#isWritten || !this.#isCompacted || this.#isRewound) return;
    this.#condense();
    await this.#store.snapshot({ events: this.#events.slice(), count: this.#count });
  }

  #condense(): void {
    const count = this.#count;
    const condensed = condense(this.#events);
    if (condensed !== this.#events) this.#isComplete = false;
    this.#events = [...condensed];
    this.#condensed = count - condensed.length;
    this.#condenseAt = Math.max(this.#minCondensed, 2 * this.#events.length);
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Like `subscribe`, but first passes on the events in `events` that other listeners have received, starting at index
   * `from`. No event is missed or repeated.
   */
  follow(listener: Listener, from = 0): () => void {
    const untold = this.#undeliveredEvents();
    for (const event of this.#events.slice(from)) {
      if (!untold.has(event) && event.type !== "troupe.agent_state") listener(event);
    }
    return this.subscribe(listener);
  }

  /** Returns stored events that listeners have not received. */
  #undeliveredEvents(): ReadonlySet<SessionEvent> {
    const all = [...this.#waiting.map(({ event }) => event), ...this.#lost, ...this.#delivering];
    return new Set(all.filter(({ ephemeral }) => ephemeral !== true));
  }

  emit<T extends EventType>(agentId: string | undefined, type: T, data: EventData<T>): Promise<void> {
    if (!this.#redactor) return this.#emitEvent(agentId, type, data);
    let written = resolved;
    for (const event of this.#redactor.pass(agentId, type, data)) {
      // The redactor returns events of the same table.
      written = this.#emitEvent(agentId, event.type as EventType, event.data as EventData<EventType>);
    }
    return written;
  }

  #emitEvent<T extends EventType>(agentId: string | undefined, type: T, data: EventData<T>): Promise<void> {
    const ephemeral = isEphemeral(type);
    const event = this.#stamped({ agentId, type, data, ephemeral });
    return ephemeral ? this.#deliver(event) : this.#storeEvent(event);
  }

  /** Passes an event to listeners without storing it. This is how a failure to store is reported. */
  announce<T extends EventType>(type: T, data: EventData<T>): void {
    for (const event of this.#redactor?.pass(undefined, type, data) ?? [{ type, data }]) {
      void this.#deliver(
        this.#stamped({ agentId: undefined, type: event.type as EventType, data: event.data, ephemeral: true }),
      );
    }
  }

  #stamped(draft: { agentId: string | undefined; type: EventType; data: unknown; ephemeral: boolean }): SessionEvent {
    const { agentId, type, data, ephemeral } = draft;
    // The table ties data to type, which the compiler cannot infer through a generic.
    return {
      id: this.#stamp.id("event"),
      timestamp: new Date(this.#stamp.now()).toISOString(),
      parentId: this.#lastId,
      ...defined({ agentId }),
      ...(ephemeral && { ephemeral }),
      type,
      data,
    } as SessionEvent;
  }

  #deliver(event: SessionEvent): Promise<void> {
    if (this.#waiting.length === 0) this.#notify(event);
    else this.#waiting.push({ event, state: "ready" });
    return resolved;
  }

  /** Whether a write failed. Until the repair, every further write fails too. */
  get isBroken(): boolean {
    return this.#broken;
  }

  /**
   * Repairs the log after a failed write: resets it to the acknowledged events and writes the others again. Rejects
   * while the cause persists. Does nothing if no write failed.
   */
  repair(): Promise<void> {
    this.#repairing ??= this.#repair().finally(() => {
      this.#repairing = undefined;
    });
    return this.#repairing;
  }

  async #repair(): Promise<void> {
    if (!this.#broken) return;
    await this.#store.repairAfterFailedWrite();
    this.#broken = false;
    const lost = this.#lost;
    this.#lost = [];
    await Promise.all(lost.map((event) => this.#write(event)));
  }

  /** Withdraws an event that could not be written, as if it had not been emitted. Returns true if there was one. */
  discard(matches: (event: SessionEvent) => boolean): boolean {
    const found = this.#lost.find(matches);
    if (!found) return false;
    this.#lost.splice(this.#lost.indexOf(found), 1);
    const index = this.#events.lastIndexOf(found);
    this.#events.splice(index, 1);
    for (const { events } of this.#collecting) if (events.includes(found)) events.splice(events.lastIndexOf(found), 1);
    const follower = this.#events[index];
    if (follower) follower.parentId = found.parentId;
    else this.#lastId = found.parentId;
    return true;
  }

  /**
   * Replaces the log's view and emits `troupe.rewound`. Readers see either the old or the new view. If writing fails,
   * restores the old view and throws. The caller must rebuild its folds.
   */
  async rewind(view: readonly SessionEvent[], data: EventData<"troupe.rewound">): Promise<void> {
    const before = this.#events;
    const [condensed, isComplete] = [this.#condensed, this.#isComplete];
    const event = this.#stamped({ agentId: undefined, type: "troupe.rewound", data, ephemeral: false });
    event.parentId = view.at(-1)?.id ?? null;
    this.#events = [...view, event];
    [this.#condensed, this.#isComplete, this.#isRewound] = [0, true, true];
    this.#condenseAt = Math.max(this.#minCondensed, 2 * this.#events.length);
    this.#lastId = event.id;
    try {
      await this.#write(event);
    } catch (error) {
      this.#lost = this.#lost.filter((lost) => lost !== event);
      const since = this.#events.slice(view.length + 1);
      const last = before.at(-1)?.id ?? null;
      if (since[0]) since[0].parentId = last;
      else this.#lastId = last;
      this.#events = [...before, ...since];
      [this.#condensed, this.#isComplete] = [condensed, isComplete];
      throw error;
    }
  }

  #storeEvent(event: SessionEvent): Promise<void> {
    if (this.#isCompacted && this.#events.length >= this.#condenseAt && this.#isWritten) {
      if (this.#isRewound) this.#condense();
      else void this.snapshot();
    }
    this.#isCompacted ||= isCompaction(event);
    this.#lastId = event.id;
    this.#events.push(event);
    for (const { events, matches } of this.#collecting) if (matches(event)) events.push(event);
    this.#fold(event);
    return this.#write(event);
  }

  #write(event: SessionEvent): Promise<void> {
    const entry = { event, state: "pending" as "pending" | "ready" | "lost" };
    this.#waiting.push(entry);
    const written = this.#store.append(event, { barrier: isBarrier(event.type) }).then(
      () => this.#setState(entry, "ready"),
      (error: unknown) => {
        this.#broken = true;
        this.#lost.push(event);
        this.#setState(entry, "lost");
        throw error;
      },
    );
    written.catch(() => undefined); // the rejection also reaches callers that await a later event
    return written;
  }

  #setState(entry: { state: "pending" | "ready" | "lost" }, state: "ready" | "lost"): void {
    entry.state = state;
    while (this.#waiting[0] && this.#waiting[0].state !== "pending") {
      const next = this.#waiting.shift();
      if (next?.state === "ready") this.#notify(next.event);
    }
  }

  /** Passes an event to all listeners. Events that listeners emit meanwhile follow afterwards. */
  #notify(event: SessionEvent): void {
    this.#delivering.push(event);
    if (this.#delivering.length > 1) return;
    for (let next = this.#delivering[0]; next; this.#delivering.shift(), next = this.#delivering[0]) {
      for (const listener of this.#listeners) {
        try {
          listener(next);
        } catch (error) {
          this.#onListenerDefect(error);
        }
      }
    }
  }
}

const resolved = Promise.resolve();
const MIN_CONDENSED = 5_000;
