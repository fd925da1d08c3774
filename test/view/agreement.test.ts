import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { Replay } from "../../src/view/replay.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { type Recorded, recordings, storedOf } from "./recorded.ts";
import { storedView } from "./stored-view.ts";

const RUNS = process.env.TROUPE_SLOW === undefined ? 5 : 30;

let logs: readonly Recorded[] = [];
beforeAll(async () => {
  logs = await recordings();
});

function folded(events: readonly SessionEvent[], view = new SessionView()): SessionView {
  for (const event of events) view.apply(event);
  return view;
}

const each = (check: (log: Recorded) => void): void => {
  expect(logs.length).toBeGreaterThan(0);
  for (const log of logs) check(log);
};

describe("watchers agree", () => {
  it("a view folded from a snapshot and the rest equals one that saw all events", () => {
    each(({ name, events }) => {
      const all = folded(events).view;
      fc.assert(
        fc.property(fc.nat(events.length), (cut) => {
          const snapshot = folded(events.slice(0, cut)).snapshot();
          expect(folded(events.slice(cut), SessionView.restored(snapshot)).view, name).toEqual(all);
        }),
        { numRuns: RUNS },
      );
    });
  });

  it("a snapshot stays unchanged while the view continues", () => {
    each(({ name, events }) => {
      const view = folded(events.slice(0, events.length / 2));
      const snapshot = view.snapshot();
      const before = structuredClone(snapshot);
      folded(events.slice(events.length / 2), view);
      expect(snapshot, name).toEqual(before);
    });
  });

  it("a live watcher and one that reads the log show the same at every sequence number", () => {
    each(({ name, events }) => {
      if (name === "rewind") return;
      const [live, late] = [new SessionView(), new SessionView()];
      for (const event of events) {
        live.apply(event);
        if (event.ephemeral === true) continue;
        late.apply(event);
        const where = `${name}: ${event.type} at ${late.view.sequence}`;
        expect(storedView(live.view), where).toEqual(storedView(late.view));
      }
    });
  });

  it("a replay of any sequence number in any order equals a fold from the beginning", () => {
    each(({ name, events }) => {
      if (name === "rewind") return;
      const stored = storedOf(events);
      const replay = new Replay(stored, 7);
      fc.assert(
        fc.property(fc.nat(stored.length), (at) => {
          const { revision: _, ...view } = folded(stored.slice(0, at)).view;
          expect(replay.at(at).view, name).toMatchObject(view);
        }),
        { numRuns: RUNS },
      );
    });
  });

  it("a view asks for a reload when a rewind removes shown events, and a replay omits them", () => {
    const events = storedOf(logs.find(({ name }) => name === "rewind")?.events ?? []);
    const place = events.findIndex(({ type }) => type === "troupe.rewound");
    const texts = (view: SessionView): string[] =>
      view.view.main.blocks.flatMap((block) => (block.kind === "user" ? [block.text] : []));
    expect(folded(events.slice(0, place)).view.needsReload).toBe(false);
    expect(folded(events.slice(0, place + 1)).view.needsReload).toBe(true);
    const replay = new Replay(events);
    expect(texts(replay.at(place))).toEqual(["first", "second"]);
    expect(texts(replay.at(place + 1))).toEqual(["first"]);
    const end = replay.at(events.length);
    expect(texts(end)).toEqual(["first", "instead", "and now"]);
    expect(end.view.needsReload).toBe(false);
  });
});
