import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { viewBefore, viewUpTo, visibleEvents } from "../../src/store/log/rewound.ts";
import { message, temporaryFolder } from "./support.ts";

type Step =
  | { readonly kind: "say" }
  | { readonly kind: "rewind"; readonly share: number }
  | { readonly kind: "restore"; readonly share: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: "say" } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("rewind" as const), share: fc.nat(999) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const), share: fc.nat(999) }) },
);

const mark = (number: number, data: object): SessionEvent =>
  ({ ...message(number), type: "troupe.rewound", data: { eventsRemoved: 0, ...data } }) as SessionEvent;

const ids = (events: readonly SessionEvent[]): string[] => events.map(({ id }) => id);

/** What somebody would remember who kept every view they ever saw. */
function played(steps: readonly Step[]): { all: SessionEvent[]; view: string[] } {
  const all: SessionEvent[] = [message(1)];
  let view = ids(all);
  const seen: { id: string; before: string[] }[] = [];
  for (const one of steps) {
    const number = all.length + 1;
    if (one.kind === "say") all.push(message(number));
    else if (one.kind === "rewind") {
      const upTo = 1 + (one.share % Math.max(1, view.length - 1));
      seen.push({ id: message(number).id, before: view });
      all.push(mark(number, { upToEventId: view[upTo] ?? view.at(-1) }));
      view = view.slice(0, view[upTo] === undefined ? -1 : upTo);
    } else {
      const meant = seen[one.share % Math.max(1, seen.length)];
      if (!meant) continue;
      seen.push({ id: message(number).id, before: view });
      all.push(mark(number, { upToEventId: meant.id, restores: meant.id }));
      view = meant.before;
    }
    view = [...view, message(number).id];
  }
  return { all, view };
}

describe("a log with rewinds", () => {
  it("a log with rewinds reads as the remaining events, and keeps all of them", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { all, view } = played(steps);
        const { events, removed } = visibleEvents(all);
        expect(ids(events)).toEqual(view);
        expect(ids([...events, ...removed]).sort()).toEqual(ids(all).sort());
      }),
    );
  });

  it("a log without rewinds is read at no extra cost", () => {
    const all = [message(1), message(2)];
    expect(visibleEvents(all).events).toBe(all);
  });

  it("a log with rewinds keeps events when damage removed what a rewind names", () => {
    const all = [message(1), message(2), message(3)];
    const rewound = mark(4, { upToEventId: message(2).id, lastEventId: message(1).id });
    expect(ids(visibleEvents([...all, rewound]).events)).toEqual(ids([message(1), rewound]));
    // The event itself is gone, but the one before it is known; then that one is gone too.
    const without = all.filter(({ id }) => id !== message(2).id);
    expect(ids(visibleEvents([...without, rewound]).events)).toEqual(ids([message(1), rewound]));
    const neither = [message(3)];
    expect(ids(visibleEvents([...neither, rewound]).events)).toEqual(ids([message(3), rewound]));
    const restored = mark(5, { upToEventId: "gone", restores: "gone" });
    expect(ids(visibleEvents([...all, restored]).events)).toEqual(ids([...all, restored]));
    expect(viewBefore(all, "gone")).toBeUndefined();
    expect(viewUpTo(all, "gone")).toBeUndefined();
  });

  it("a log with rewinds is the same for writers and readers, and reports what is hidden", async () => {
    const store = jsonlStore({ root: temporaryFolder(), disk: nodeDisk, stamp: systemStamp });
    const log = await store.create("one");
    const rewound = mark(4, { upToEventId: message(2).id });
    const all = [message(1), message(2), message(3), rewound, message(5)];
    for (const event of all) await log.append(event, { barrier: true });
    expect(await log.everything()).toEqual(all);
    await log.close();
    const view = { events: [message(1), rewound, message(5)], removed: [message(2), message(3)] };
    expect(await store.read("one")).toEqual({ ...view, damage: [] });
    const opened = await store.open("one");
    expect({ events: opened.events, removed: opened.removed }).toEqual(view);
    await opened.append(message(6), { barrier: true });
    await opened.close();
    expect((await store.read("one")).events.map(({ id }) => id)).toEqual(ids([...view.events, message(6)]));
  });
});
