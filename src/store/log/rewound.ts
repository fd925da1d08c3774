/**
 * A log is only ever appended to, so rewinding is an event like any other: `troupe.rewound` says from where on what was
 * said before does not count any more. It is one record, whole or not there, so a rewind has happened or it has not;
 * and what it took out of view is still in the log and can come back, by another such event.
 */
import type { EventOf, SessionEvent } from "../../protocol/event.ts";

/** A log as it reads after its rewinds. */
export interface View {
  readonly events: readonly SessionEvent[];
  /** What is out of view, in the order it was said. */
  readonly removed: readonly SessionEvent[];
}

export function viewOf(all: readonly SessionEvent[]): View {
  if (!all.some(isRewind)) return { events: all, removed: [] };
  const events = replay(all).view;
  const inView = new Set(events);
  return { events, removed: all.filter((event) => !inView.has(event)) };
}

/** The view as it was right before this rewind; undefined when there is no such rewind. */
export function viewBefore(all: readonly SessionEvent[], rewindId: string): readonly SessionEvent[] | undefined {
  return replay(all, rewindId).before.get(rewindId);
}

/** What stays of a view when it is rewound: everything before the event. Undefined when it is not in view. */
export function viewUpTo(view: readonly SessionEvent[], eventId: string): readonly SessionEvent[] | undefined {
  const place = view.findIndex(({ id }) => id === eventId);
  return place === -1 ? undefined : view.slice(0, place);
}

const isRewind = ({ type }: SessionEvent): boolean => type === "troupe.rewound";

/** Keeps the views before those rewinds that were taken back, and before the one asked for. */
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
      view = [...rewound(view, event, before)];
    }
    view.push(event);
  }
  return { view, before };
}

/** Where damage has taken what it names, the rewind counts for nothing: rather too much than too little. */
function rewound(
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
