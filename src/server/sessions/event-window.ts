/**
 * The events that clients of a session received, in order, for clients that poll. Stored events are read from the
 * session on request. Only ephemeral events are held here, up to a limit.
 */
import type { SessionEvent } from "../../protocol/event.ts";

/**
 * A position between two events: every stored event up to number `kept` and every ephemeral one up to number `passing`
 * precedes it. Numbers only grow, also when a session is rewound.
 */
export interface Cursor {
  readonly kept: number;
  readonly passing: number;
}

export interface WindowQuery {
  /** Returns events after this position, or before it when reading backward. Default: the first or the last event. */
  readonly from?: Cursor;
  readonly max: number;
  /** A page ends before the event that would make its JSON longer than this, but holds at least one event. */
  readonly maxCharacters: number;
  readonly direction: "forward" | "backward";
  matches(event: SessionEvent): boolean;
}

export interface WindowPage {
  readonly events: readonly SessionEvent[];
  /** Start of the next page. */
  readonly cursor: Cursor;
  readonly hasMore: boolean;
}

/** Reads stored events by their position in the session's log, from `from` up to, not including, `to`. */
type ReadStored = (from: number, to: number) => Promise<readonly SessionEvent[]>;

/** Stored events with consecutive numbers at consecutive positions. */
interface Run {
  readonly number: number;
  readonly position: number;
  count: number;
}

interface EphemeralEvent {
  readonly number: number;
  /** Number of the stored event before it. */
  readonly kept: number;
  readonly event: SessionEvent;
}

interface Item {
  readonly cursor: Cursor;
  readonly event: SessionEvent;
}

/** Maximum number of ephemeral events. The oldest are dropped first. */
const MAX_EPHEMERAL = 2_000;
const CHUNK_EVENTS = 500;
/** Maximum number of stored events that one page examines. The client continues with the next page. */
const MAX_LOOKED_AT = 10_000;

/** Collects events up to a number and a size. */
class Page {
  readonly events: SessionEvent[] = [];
  readonly #limits: Pick<WindowQuery, "max" | "maxCharacters">;
  #characters = 0;

  constructor(limits: Pick<WindowQuery, "max" | "maxCharacters">) {
    this.#limits = limits;
  }

  /** Adds the event, or returns false when the page is full. */
  takes(event: SessionEvent): boolean {
    const { max, maxCharacters } = this.#limits;
    if (this.events.length === max) return false;
    this.#characters += JSON.stringify(event).length;
    if (this.events.length > 0 && this.#characters > maxCharacters) return false;
    this.events.push(event);
    return true;
  }
}

export class EventWindow {
  readonly #read: ReadStored;
  /** Ordered by their numbers. Events that a rewind removed are not included. */
  #runs: Run[] = [];
  #passing: EphemeralEvent[] = [];
  #last: Cursor = { kept: 0, passing: 0 };
  /** Changes with each rewind, since positions then refer to other events. */
  #rewinds = 0;
  readonly #waiters = new Set<() => void>();

  constructor(read: ReadStored) {
    this.#read = read;
  }

  /** The position after the newest event. */
  get last(): Cursor {
    return this.#last;
  }

  /** Adds the stored events that existed before the first listener. */
  begin(count: number): void {
    if (count > 0) this.#runs = [{ number: 1, position: 0, count }];
    this.#last = { kept: count, passing: 0 };
  }

  /** `position`: the position of a stored event in the session's log. */
  add(event: SessionEvent, position: number): void {
    if (event.ephemeral) this.#addPassing(event);
    else this.#addKept(position);
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }

  async read(query: WindowQuery): Promise<WindowPage> {
    for (;;) {
      const rewinds = this.#rewinds;
      const page = query.direction === "forward" ? await this.#forward(query) : await this.#backward(query);
      if (rewinds === this.#rewinds) return page;
    }
  }

  /** Resolves when an event is added, the time is over, or the signal aborts. */
  async next(timeoutMs: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.#waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      signal.addEventListener("abort", done, { once: true });
      this.#waiters.add(done);
    });
  }

  async #forward({ from = { kept: 0, passing: 0 }, matches, ...limits }: WindowQuery): Promise<WindowPage> {
    const end = this.#last;
    const page = new Page(limits);
    const { events } = page;
    let cursor = from;
    for (let lookedAt = 0; lookedAt < MAX_LOOKED_AT; lookedAt += CHUNK_EVENTS) {
      const to = Math.min(end.kept, cursor.kept + CHUNK_EVENTS);
      const passing = this.#passing.filter(
        ({ number, kept }) => number > cursor.passing && number <= end.passing && kept <= to,
      );
      const items = mergeItems(await this.#kept(cursor.kept, to), passing);
      for (const item of items) {
        if (matches(item.event) && !page.takes(item.event)) return { events, cursor, hasMore: true };
        cursor = {
          kept: Math.max(cursor.kept, item.cursor.kept),
          passing: Math.max(cursor.passing, item.cursor.passing),
        };
      }
      cursor = { ...cursor, kept: Math.max(cursor.kept, to) };
      if (to >= end.kept) return { events, cursor: later(cursor, end), hasMore: false };
    }
    return { events, cursor, hasMore: true };
  }

  async #backward(query: WindowQuery): Promise<WindowPage> {
    const { matches } = query;
    const page = new Page(query);
    const { events } = page;
    let cursor = query.from ?? { kept: this.#last.kept + 1, passing: this.#last.passing + 1 };
    for (let lookedAt = 0; lookedAt < MAX_LOOKED_AT; lookedAt += CHUNK_EVENTS) {
      const from = Math.max(0, cursor.kept - 1 - CHUNK_EVENTS);
      const passing = this.#passing.filter(
        ({ number, kept }) => number < cursor.passing && (kept > from || from === 0),
      );
      const items = mergeItems(await this.#kept(from, cursor.kept - 1), passing);
      for (const item of items.reverse()) {
        if (matches(item.event) && !page.takes(item.event)) return { events, cursor, hasMore: true };
        const isPassing = item.event.ephemeral === true;
        cursor = isPassing ? { ...cursor, passing: item.cursor.passing } : { ...cursor, kept: item.cursor.kept };
      }
      if (from === 0) return { events, cursor, hasMore: false };
      cursor = { ...cursor, kept: from + 1 };
    }
    return { events, cursor, hasMore: true };
  }

  /** Returns stored events with numbers above `after`, up to `to`. */
  async #kept(after: number, to: number): Promise<Item[]> {
    const items: Item[] = [];
    for (const { number, position, count } of this.#runs) {
      const first = Math.max(number, after + 1);
      const last = Math.min(number + count - 1, to);
      if (first > last) continue;
      const start = position + first - number;
      const events = await this.#read(start, start + last - first + 1);
      for (const [index, event] of events.entries()) items.push({ cursor: { kept: first + index, passing: 0 }, event });
    }
    return items;
  }

  #addKept(position: number): void {
    const kept = this.#last.kept + 1;
    const run = this.#runs.at(-1);
    if (run && run.position + run.count === position) run.count++;
    else if (run && position > run.position + run.count) {
      this.#restore(position);
      return;
    } else {
      this.#cutTo(position);
      this.#runs.push({ number: kept, position, count: 1 });
    }
    this.#last = { ...this.#last, kept };
  }

  /** A rewind was taken back: events up to this position are in view again, with new numbers. */
  #restore(position: number): void {
    // Below the first rewind the view has always been the same.
    const from = Math.min(...this.#runs.slice(1).map((run) => run.position), this.#runs.length > 1 ? position : 0);
    this.#cutTo(from);
    const count = position - from + 1;
    this.#runs.push({ number: this.#last.kept + 1, position: from, count });
    this.#last = { ...this.#last, kept: this.#last.kept + count };
  }

  /** Removes everything from this position on after a rewind, including ephemeral events about it. */
  #cutTo(position: number): void {
    if (this.#runs.length > 0) this.#rewinds++;
    this.#runs = this.#runs
      .map((run) => ({ ...run, count: Math.min(run.count, position - run.position) }))
      .filter(({ count }) => count > 0);
    const end = this.#runs.at(-1);
    const lastNumber = end ? end.number + end.count - 1 : 0;
    this.#passing = this.#passing.filter(({ kept }) => kept <= lastNumber);
  }

  #addPassing(event: SessionEvent): void {
    const { kept, passing } = this.#last;
    this.#passing.push({ number: passing + 1, kept, event });
    this.#last = { kept, passing: passing + 1 };
    if (this.#passing.length > MAX_EPHEMERAL) this.#passing = this.#passing.slice(-MAX_EPHEMERAL / 2);
  }
}

/** Merges both lists in the order in which clients received the events. */
function mergeItems(kept: readonly Item[], passing: readonly EphemeralEvent[]): Item[] {
  const items = passing.map(({ number, kept: before, event }) => ({
    cursor: { kept: before, passing: number },
    event,
  }));
  return [...kept, ...items].sort(
    (one, other) => one.cursor.kept - other.cursor.kept || one.cursor.passing - other.cursor.passing,
  );
}

const later = (one: Cursor, other: Cursor): Cursor => ({
  kept: Math.max(one.kept, other.kept),
  passing: Math.max(one.passing, other.passing),
});
