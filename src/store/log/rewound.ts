/**
 * Applies rewinds. A log is append-only, so a rewind is an event: `troupe.rewound` names the event from which on
 * earlier events no longer count. It is one record, so a rewind is atomic. Removed events stay in the log, and another
 * `troupe.rewound` can restore them.
 */
import type { EventOf, SessionEvent } from "../../protocol/event.ts";

/** A log after its rewinds are applied. */
export interface RewoundLog {
  readonly events: readonly SessionEvent[];
  /** Events out of view, in log order. */
  readonly removed: readonly SessionEvent[];
}

export function visibleEvents(all: readonly SessionEvent[]): RewoundLog {
  if (!all.some(isRewind)) return { events: all, removed: [] };
  const events = replay(all).view;
  const inView = new Set(events);
  return { events, removed: all.filter((event) => !inView.has(event)) };
}

/** Returns the view right before this rewind, or `undefined` if there is no such rewind. */
export function viewBefore(all: readonly SessionEvent[], rewindId: string): readonly SessionEvent[] | undefined {
  return replay(all, rewindId).before.get(rewindId);
}

/** Returns the events before `eventId`, which remain after a rewind to it. Returns `undefined` if it is not in view. */
export function viewUpTo(view: readonly SessionEvent[], eventId: string): readonly SessionEvent[] | undefined {
  const index = view.findIndex(({ id }) => id === eventId);
  return index === -1 ? undefined : view.slice(0, index);
}

const isRewind = ({ type }: SessionEvent): boolean => type === "troupe.rewound";

/** Replays the log. `before` has the views before the rewinds that were undone, and before the requested one. */
function replay(all: readonly SessionEvent[], asked?: string) {
  const wanted = new Set(asked === undefined ? [] : [asked]);
  for (const event of all) {
    if (event.type === "troupe.rewound" && event.data.restores !== undefined) wanted.add(event.data.restores);
  }
  const before = new Map<string, readonly SessionEvent[]>();
  let view: SessionEvent[] = [];
  for (const event of all) {
    if (event.type === "troupe.rewound") {
      if (wanted.has(event.id)) before.set(event.id, [...view]);
      view = [...applyRewind(view, event, before)];
    }
    view.push(event);
  }
  return { view, before };
}

/**
 * Applies one rewind. If damage has removed the event it names, the rewind is ignored: extra events are better than
 * missing ones.
 */
function applyRewind(
  view: readonly SessionEvent[],
  { data }: EventOf<"troupe.rewound">,
  before: ReadonlyMap<string, readonly SessionEvent[]>,
): readonly SessionEvent[] {
  const { upToEventId, lastEventId, restores } = data;
  if (restores !== undefined) return before.get(restores) ?? view;
  const kept = viewUpTo(view, upToEventId);
  if (kept) return kept;
  const last = lastEventId === undefined ? -1 : view.findIndex(({ id }) => id === lastEventId);
  return last === -1 ? view : view.slice(0, last + 1);
}
