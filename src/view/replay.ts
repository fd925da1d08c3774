/** The view as it was at an earlier event of a log, for a slider over a whole session. */
import type { SessionEvent } from "../protocol/event.ts";
import type { Block } from "./blocks.ts";
import { agentOf } from "./draft.ts";
import { SessionView, type ViewSnapshot } from "./session-view.ts";

/** Events between two checkpoints; more in a log that would have more than `MAX_CHECKPOINTS` of them. */
const MIN_INTERVAL = 500;
const MAX_CHECKPOINTS = 64;

/** Random access to the views of a log. Checkpoints make a step cost the events since the last one, not since the first. */
export class Replay {
  readonly #events: readonly SessionEvent[];
  /** Index of the event that each event follows: the one before it, but for rewinds. */
  readonly #previous: Int32Array;
  readonly #checkpoints = new Map<number, ViewSnapshot>();
  readonly #interval: number;

  /** Events that are not stored are left out: a log does not have them. */
  constructor(events: readonly SessionEvent[], minInterval = MIN_INTERVAL) {
    this.#events = events.filter(({ ephemeral }) => ephemeral !== true);
    this.#previous = previousOf(this.#events);
    this.#interval = Math.max(minInterval, Math.ceil(this.#events.length / MAX_CHECKPOINTS));
  }

  /** Number of stored events. */
  get length(): number {
    return this.#events.length;
  }

  /**
   * The view after the first `sequence` events of the log, as the log reads there: what a rewind before that point took
   * back is not in it. 0 is the empty view; a number beyond the end means the end.
   */
  at(sequence: number): SessionView {
    const path: number[] = [];
    let index = Math.min(Math.max(0, Math.trunc(sequence)), this.#events.length) - 1;
    for (; index >= 0 && !this.#checkpoints.has(index); index = this.#previous[index] ?? -1) path.push(index);
    const start = this.#checkpoints.get(index);
    const view = start ? SessionView.restored(start) : new SessionView();
    for (const next of path.reverse()) {
      const event = this.#events[next];
      if (event) view.apply(event);
      if (next > 0 && next % this.#interval === 0) this.#checkpoints.set(next, view.snapshot());
    }
    return view;
  }
}

/** Every event follows the one before it; a rewind follows the last event that it leaves. */
function previousOf(events: readonly SessionEvent[]): Int32Array {
  const indices = new Map<string, number>();
  const hasRewinds = events.some(({ type }) => type === "troupe.rewound");
  return Int32Array.from(events, ({ id, type, parentId }, index) => {
    if (!hasRewinds) return index - 1;
    indices.set(id, index);
    if (type !== "troupe.rewound") return index - 1;
    return parentId === null ? -1 : (indices.get(parentId) ?? index - 1);
  });
}

/**
 * The whole transcript of one agent (the main agent unless told), also where a view has dropped the beginning. `events`
 * are those of the session, as its log reads now.
 */
export function* transcriptOf(events: Iterable<SessionEvent>, agentId?: string): Generator<Block> {
  const folded = new SessionView();
  for (const event of events) {
    folded.apply(event);
    if (agentOf(folded.view, agentId)?.blocks.length) yield* folded.drain(agentId);
  }
}
