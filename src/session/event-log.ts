import type { Redactor } from "../lib/redact/redact.ts";
import { createEventRedactor, type EventRedactor } from "../lib/redact/redact-event.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { EventData, EventType, SessionEvent } from "../protocol/event.ts";
import { isBarrier, isEphemeral } from "../protocol/event-kind.ts";
import type { SessionLog } from "../store/store.ts";
import { condense, isCompaction } from "./compaction/condense.ts";

export type Listener = (event: SessionEvent) => void;

/** The events of a session as its log has them, by their position (0 = the first). */
export interface EventPast {
  readonly count: number;
  /** How many of them clients could have heard of; all of these can be read. */
  readonly toldCount: number;
  /** How many were there before this process opened the session. */
  readonly inherited: number;
  /** Whether `events` has all of them. */
  readonly isComplete: boolean;
  /** Events from position `from` up to, not including, `to`. */
  read(from: number, to: number): Promise<readonly SessionEvent[]>;
}

const PAGE_EVENTS = 500;

/** All events of a session that listeners were told of, oldest first, page by page where they are not in memory. */
export async function* eventsOf({
  events,
  past,
}: {
  readonly events: readonly SessionEvent[];
  readonly past: EventPast;
}): AsyncGenerator<SessionEvent> {
  const { isComplete, toldCount } = past;
  if (isComplete) {
    yield* events.slice(0, toldCount);
    return;
  }
  for (let from = 0; from < toldCount; from += PAGE_EVENTS) {
    yield* await past.read(from, Math.min(toldCount, from + PAGE_EVENTS));
  }
}

/**
 * Where every event of a session passes: stamped, chained, folded, stored, then told. Listeners hear events in the
 * order they were emitted, and a stored one only when it is as durable as its kind demands.
 */
export class EventLog {
  readonly #store: SessionLog;
  readonly #stamp: Stamp;
  readonly #fold: (event: SessionEvent) => void;
  readonly #onListenerDefect: (error: unknown) => void;
  readonly #redactor: EventRedactor | undefined;
  readonly #listeners = new Set<Listener>();
  /** Those that still matter: a long session does not hold its history. */
  #events: SessionEvent[];
  /** Number of events in the log's view that are not in `#events` any more. */
  #condensed: number;
  /** How long `#events` must be before it is condensed. */
  #condenseAt: number;
  readonly #minCondensed: number;
  #isComplete: boolean;
  #isCompacted: boolean;
  /** What is out of view since then is not known here: the next opening makes the snapshot. */
  #isRewound = false;
  /** Lists that take in every kept event while somebody wants them. */
  readonly #collecting = new Set<SessionEvent[]>();
  /** Emitted but not yet told; `ready` when durable or ephemeral, `lost` when the write failed. */
  readonly #waiting: { event: SessionEvent; state: "pending" | "ready" | "lost" }[] = [];
  /** Being told: the first to some listeners already, the rest to none. */
  readonly #untold: SessionEvent[] = [];
  /** Remembered, but not in the log. */
  #lost: SessionEvent[] = [];
  #broken = false;
  /** One at a time, whoever asks: who comes second waits for the same. */
  #repairing: Promise<void> | undefined;
  #lastId: string | null;

  constructor(options: {
    store: SessionLog;
    stamp: Stamp;
    fold: (event: SessionEvent) => void;
    /** A listener threw: its own defect, which harms neither the session nor other listeners. */
    onListenerDefect: (error: unknown) => void;
    /** Takes secrets out of what is said, here and nowhere else: before log, index, listeners and whoever they tell. */
    redactor?: Redactor;
    /** Fewer events than this are never condensed. */
    minCondensed?: number;
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

  /** Events that still matter: all of them in a short session, what `condense` leaves of them in a long one. */
  get events(): readonly SessionEvent[] {
    return this.#events;
  }

  /** All events of the log, as it reads now, by their position. */
  get past(): EventPast {
    return {
      count: this.#count,
      toldCount: this.#count - this.#untoldEvents().size,
      inherited: this.#store.count,
      isComplete: this.#isComplete,
      read: async (from, to) =>
        this.#isComplete ? this.#events.slice(Math.max(0, from), Math.max(0, to)) : this.#store.page(from, to),
    };
  }

  get #count(): number {
    return this.#condensed + this.#events.length;
  }

  /** Collects every event that is kept from now on, until stopped. */
  collect(): { readonly events: readonly SessionEvent[]; stop(): void } {
    const events: SessionEvent[] = [];
    this.#collecting.add(events);
    return { events, stop: () => this.#collecting.delete(events) };
  }

  /** Everything that was emitted is in the log. */
  get #isSettled(): boolean {
    return this.#waiting.length === 0 && this.#lost.length === 0 && !this.#broken;
  }

  /** Stores a snapshot, so that the next opening need not read the whole log. */
  async snapshot(): Promise<void> {
    if (!this.#isSettled || !this.#isCompacted || this.#isRewound) return;
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
   * As `subscribe`, but first hears every event in `events` that others have heard already, from the one at index `from`
   * on: no gap, nothing twice.
   */
  follow(listener: Listener, from = 0): () => void {
    const untold = this.#untoldEvents();
    for (const event of this.#events.slice(from)) {
      if (!untold.has(event) && event.type !== "troupe.agent_state") listener(event);
    }
    return this.subscribe(listener);
  }

  /** Kept events that listeners have not heard of. */
  #untoldEvents(): ReadonlySet<SessionEvent> {
    const all = [...this.#waiting.map(({ event }) => event), ...this.#lost, ...this.#untold];
    return new Set(all.filter(({ ephemeral }) => ephemeral !== true));
  }

  emit<T extends EventType>(agentId: string | undefined, type: T, data: EventData<T>): Promise<void> {
    if (!this.#redactor) return this.#say(agentId, type, data);
    let said = told;
    for (const event of this.#redactor.pass(agentId, type, data)) {
      // It gives back what it was given: events of the table.
      said = this.#say(agentId, event.type as EventType, event.data as EventData<EventType>);
    }
    return said;
  }

  #say<T extends EventType>(agentId: string | undefined, type: T, data: EventData<T>): Promise<void> {
    const ephemeral = isEphemeral(type);
    const event = this.#stamped({ agentId, type, data, ephemeral });
    return ephemeral ? this.#tell(event) : this.#keep(event);
  }

  /** Tells without keeping what is otherwise kept: the only way to say that keeping failed. */
  announce<T extends EventType>(type: T, data: EventData<T>): void {
    for (const event of this.#redactor?.pass(undefined, type, data) ?? [{ type, data }]) {
      void this.#tell(
        this.#stamped({ agentId: undefined, type: event.type as EventType, data: event.data, ephemeral: true }),
      );
    }
  }

  #stamped(what: { agentId: string | undefined; type: EventType; data: unknown; ephemeral: boolean }): SessionEvent {
    const { agentId, type, data, ephemeral } = what;
    // The table ties data to type; the compiler cannot follow that through a generic.
    return {
      id: this.#stamp.id("event"),
      timestamp: new Date(this.#stamp.now()).toISOString(),
      parentId: this.#lastId,
      ...(agentId !== undefined && { agentId }),
      ...(ephemeral && { ephemeral }),
      type,
      data,
    } as SessionEvent;
  }

  #tell(event: SessionEvent): Promise<void> {
    if (this.#waiting.length === 0) this.#notify(event);
    else this.#waiting.push({ event, state: "ready" });
    return told;
  }

  /**
   * After a failed write: the log goes back to what was acknowledged, and what was not is written again, so that the
   * log and what we remember are one. Fails as long as the cause lasts. Costs nothing when all is well.
   */
  repair(): Promise<void> {
    this.#repairing ??= this.#repair().finally(() => {
      this.#repairing = undefined;
    });
    return this.#repairing;
  }

  async #repair(): Promise<void> {
    if (!this.#broken) return;
    await this.#store.recover();
    this.#broken = false;
    const lost = this.#lost;
    this.#lost = [];
    await Promise.all(lost.map((event) => this.#write(event)));
  }

  /** Takes back what could not be written, as if it had never been said. True when there was such an event. */
  unsay(isMeant: (event: SessionEvent) => boolean): boolean {
    const meant = this.#lost.find(isMeant);
    if (!meant) return false;
    this.#lost.splice(this.#lost.indexOf(meant), 1);
    const place = this.#events.lastIndexOf(meant);
    this.#events.splice(place, 1);
    for (const list of this.#collecting) if (list.includes(meant)) list.splice(list.lastIndexOf(meant), 1);
    const follower = this.#events[place];
    if (follower) follower.parentId = meant.parentId;
    else this.#lastId = meant.parentId;
    return true;
  }

  /**
   * From now on the log reads as `view`, and then says so. Whoever reads it in the same moment reads one or the other;
   * when it cannot be written, everything is as before. What is folded is up to whoever asked.
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

  #keep(event: SessionEvent): Promise<void> {
    if (this.#isCompacted && this.#events.length >= this.#condenseAt && this.#isSettled) {
      if (this.#isRewound) this.#condense();
      else void this.snapshot();
    }
    this.#isCompacted ||= isCompaction(event);
    this.#lastId = event.id;
    this.#events.push(event);
    for (const list of this.#collecting) list.push(event);
    this.#fold(event);
    return this.#write(event);
  }

  #write(event: SessionEvent): Promise<void> {
    const entry = { event, state: "pending" as "pending" | "ready" | "lost" };
    this.#waiting.push(entry);
    const written = this.#store.append(event, { barrier: isBarrier(event.type) }).then(
      () => this.#settle(entry, "ready"),
      (error: unknown) => {
        this.#broken = true;
        this.#lost.push(event);
        this.#settle(entry, "lost");
        throw error;
      },
    );
    written.catch(() => undefined); // whoever awaits a later event hears of it
    return written;
  }

  #settle(entry: { state: "pending" | "ready" | "lost" }, state: "ready" | "lost"): void {
    entry.state = state;
    while (this.#waiting[0] && this.#waiting[0].state !== "pending") {
      const next = this.#waiting.shift();
      if (next?.state === "ready") this.#notify(next.event);
    }
  }

  /** What a listener says in turn is told when all have heard this. */
  #notify(event: SessionEvent): void {
    this.#untold.push(event);
    if (this.#untold.length > 1) return;
    for (let next = this.#untold[0]; next; this.#untold.shift(), next = this.#untold[0]) {
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

const told = Promise.resolve();
const MIN_CONDENSED = 5_000;
