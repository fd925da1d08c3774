/** The view as it was at an earlier event of a log, for a slider over a whole session. */
import type { SessionEvent } from "../protocol/event.ts";
import type { Block } from "./blocks.ts";
import { agentOf } from "./draft.ts";
import { SessionView, type ViewSnapshot } from "./session-view.ts";

/** Events between two snapshots; more in a log that would have more than `MAX_SNAPSHOTS` of them. */
const MIN_INTERVAL = 500;
const MAX_SNAPSHOTS = 64;

/**
 * Random access to the views of a log, which may still grow. Snapshots make a step cost the events since the last one, not
 * since the first.
 */
export class Replay {
  readonly #events: SessionEvent[] = [];
  /** Index of the event that each rewind follows: the last one that it leaves. Every other event follows the one before it. */
  readonly #rewinds = new Map<number, number>();
  readonly #snapshots = new Map<number, ViewSnapshot>();
  #interval: number;

  /** Events that are not stored are left out: a log does not have them. */
  constructor(events: readonly SessionEvent[] = [], minInterval = MIN_INTERVAL) {
    for (const event of events) this.append(event);
    this.#interval = Math.max(minInterval, Math.ceil(this.#events.length / MAX_SNAPSHOTS));
  }

  /** The stored events. */
  get events(): readonly SessionEvent[] {
    return this.#events;
  }

  /** Number of stored events. */
  get length(): number {
    return this.#events.length;
  }

  append(event: SessionEvent): void {
    if (event.ephemeral === true) return;
    if (event.type === "troupe.rewound") this.#rewinds.set(this.#events.length, this.#lastBefore(event));
    this.#events.push(event);
  }

  #lastBefore({ parentId }: SessionEvent): number {
    if (parentId === null) return -1;
    const index = this.#events.findLastIndex(({ id }) => id === parentId);
    return index < 0 ? this.#events.length - 1 : index;
  }

  /**
   * The view after the first `sequence` events of the log, as the log reads there: what a rewind before that point took
   * back is not in it. 0 is the empty view; a number beyond the end means the end.
   */
  at(sequence: number): SessionView {
    const path: number[] = [];
    let index = Math.min(Math.max(0, Math.trunc(sequence)), this.#events.length) - 1;
    for (; index >= 0 && !this.#snapshots.has(index); index = this.#rewinds.get(index) ?? index - 1) path.push(index);
    const start = this.#snapshots.get(index);
    const view = start ? SessionView.restored(start) : new SessionView();
    for (const next of path.reverse()) {
      const event = this.#events[next];
      if (event) view.apply(event);
      if (next > 0 && next % this.#interval === 0) this.#keep(next, view.snapshot());
    }
    return view;
  }

  #keep(index: number, snapshot: ViewSnapshot): void {
    this.#snapshots.set(index, snapshot);
    if (this.#snapshots.size <= 2 * MAX_SNAPSHOTS) return;
    this.#interval *= 2;
    for (const at of this.#snapshots.keys()) if (at % this.#interval !== 0) this.#snapshots.delete(at);
  }

  /** Makes the missing snapshots, so that `at` is fast everywhere. The caller can pause after each part of the work. */
  *prepare(): Generator<number> {
    for (let index = this.#interval; index < this.#events.length; index += this.#interval) {
      if (this.#snapshots.has(index)) continue;
      this.at(index + 1);
      yield index;
    }
  }

  /**
   * The position (number of events) after the next event that `matches`, or the previous one for -1. Positions between two
   * such events show the same as the first of them: a step back leads to the one before. Returns `undefined` at either end.
   */
  step(from: number, by: 1 | -1, matches: (event: SessionEvent) => boolean): number | undefined {
    if (by > 0) {
      const next = this.#events.findIndex((event, index) => index >= from && matches(event));
      return next < 0 ? undefined : next + 1;
    }
    const before = (index: number): number => this.#events.findLastIndex((event, at) => at < index && matches(event));
    const previous = before(before(from));
    return previous < 0 ? undefined : previous + 1;
  }
}

/**
 * The whole transcript of one agent (default: the main agent), also where a view has dropped the beginning. `events`
 * are those of the session, as its log reads now.
 */
export function* transcriptOf(events: Iterable<SessionEvent>, agentId?: string): Generator<Block> {
  const folded = new SessionView();
  for (const event of events) {
    folded.apply(event);
    if (agentOf(folded.view, agentId)?.blocks.length) yield* folded.drain(agentId);
  }
}
