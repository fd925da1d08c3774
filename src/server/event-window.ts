/** What clients of a session have been told, in order, for those who would rather ask than listen. */
import type { SessionEvent } from "../protocol/event.ts";

export interface WindowQuery {
  /** Behind which; from the beginning unless told. */
  readonly after?: number;
  readonly max: number;
  /** A page ends before the event that would make its JSON longer than this, but holds at least one event. */
  readonly maxCharacters: number;
  readonly direction: "forward" | "backward";
  matches(event: SessionEvent): boolean;
}

interface Entry {
  readonly number: number;
  readonly event: SessionEvent;
}

/** What is only told and never kept is forgotten beyond this many. */
const MAX_EPHEMERAL = 2_000;

export class EventWindow {
  #entries: Entry[] = [];
  #last = 0;
  #ephemeral = 0;
  readonly #waiters = new Set<() => void>();

  /** The number of the newest event. */
  get last(): number {
    return this.#last;
  }

  add(event: SessionEvent): void {
    if (event.type === "session.snapshot_rewind") this.#rewind(event.data.upToEventId);
    this.#entries.push({ number: ++this.#last, event });
    if (event.ephemeral && ++this.#ephemeral > MAX_EPHEMERAL) this.#forget();
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }

  /** Returns one page. `last` is the cursor for the next one, `hasMore` whether that would hold anything now. */
  read(query: WindowQuery): { events: SessionEvent[]; last: number; hasMore: boolean } {
    const { after, max, maxCharacters, direction, matches } = query;
    const isForward = direction === "forward";
    const start = after ?? (isForward ? 0 : this.#last + 1);
    const events: SessionEvent[] = [];
    let reached: number | undefined;
    let characters = 0;
    for (const { number, event } of this.#from(start, isForward)) {
      if (!matches(event)) continue;
      characters += JSON.stringify(event).length;
      if (events.length === max || (events.length > 0 && characters > maxCharacters)) {
        return { events, last: reached ?? start, hasMore: true };
      }
      events.push(event);
      reached = number;
    }
    return { events, last: isForward ? Math.max(start, this.#last) : (reached ?? start), hasMore: false };
  }

  /** The entries behind a number, or those before it, newest first. */
  *#from(start: number, isForward: boolean): Generator<Entry, void> {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const number = this.#entries[middle]?.number ?? start;
      if (isForward ? number > start : number >= start) high = middle;
      else low = middle + 1;
    }
    const step = isForward ? 1 : -1;
    for (let at = isForward ? low : low - 1; ; at += step) {
      const entry = this.#entries[at];
      if (entry === undefined) return;
      yield entry;
    }
  }

  /** Until something is told, the time is over, or nobody waits any more. */
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

  /** What was taken back is not told any more; what was only told goes with it. */
  #rewind(eventId: string): void {
    const from = this.#entries.findIndex(({ event }) => event.id === eventId);
    if (from === -1) return;
    this.#entries = this.#entries.slice(0, from);
    this.#ephemeral = this.#entries.filter(({ event }) => event.ephemeral).length;
  }

  #forget(): void {
    let excess = this.#ephemeral - MAX_EPHEMERAL / 2;
    this.#entries = this.#entries.filter(({ event }) => !event.ephemeral || excess-- <= 0);
    this.#ephemeral = MAX_EPHEMERAL / 2;
  }
}
