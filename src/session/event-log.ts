import type { Redactor } from "../lib/redact.ts";
import { createEventRedactor, type EventRedactor } from "../lib/redact-event.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { EventData, EventType, SessionEvent } from "../protocol/event.ts";
import { isBarrier, isEphemeral } from "../protocol/event-kind.ts";
import type { SessionLog } from "../store/store.ts";

export type Listener = (event: SessionEvent) => void;

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
  #events: SessionEvent[];
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
  }) {
    this.#redactor = options.redactor && createEventRedactor(options.redactor);
    this.#onListenerDefect = options.onListenerDefect;
    this.#store = options.store;
    this.#stamp = options.stamp;
    this.#fold = options.fold;
    this.#events = [...options.store.events];
    this.#lastId = this.#events.at(-1)?.id ?? null;
  }

  get events(): readonly SessionEvent[] {
    return this.#events;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** As `subscribe`, but first hears every kept event that others have heard already: no gap, nothing twice. */
  follow(listener: Listener): () => void {
    const untold = new Set(this.#waiting.map(({ event }) => event));
    for (const event of [...this.#lost, ...this.#untold]) untold.add(event);
    for (const event of this.#events) if (!untold.has(event)) listener(event);
    return this.subscribe(listener);
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
    const event = this.#stamped({ agentId: undefined, type: "troupe.rewound", data, ephemeral: false });
    event.parentId = view.at(-1)?.id ?? null;
    this.#events = [...view, event];
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
      throw error;
    }
  }

  #keep(event: SessionEvent): Promise<void> {
    this.#lastId = event.id;
    this.#events.push(event);
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
