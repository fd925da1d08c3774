import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { type Cursor, EventWindow } from "../../src/server/sessions/event-window.ts";

const event = (id: string, ephemeral?: true): SessionEvent => ({
  ...{ id, timestamp: "2026-01-01T00:00:00.000Z", parentId: null, ...(ephemeral && { ephemeral }) },
  ...{ type: "session.info" as const, data: { infoType: "test", message: id } },
});

/** A session with so many stored events, which only its log has. */
function stageWith(count: number) {
  const stored = Array.from({ length: count }, (_, index) => event(`s${index}`));
  const window = new EventWindow(async (from, to) => stored.slice(from, to));
  window.begin(count);
  const say = (id: string): void => {
    stored.push(event(id));
    window.add(event(id), stored.length - 1);
  };
  const hint = (id: string): void => window.add(event(id, true), stored.length);
  const rewindTo = (position: number): void => void stored.splice(position);
  return { window, stored, say, hint, rewindTo };
}

const CHARACTERS = 1024 * 1024;

async function pagesOf(window: EventWindow, max: number, direction: "forward" | "backward", from?: Cursor) {
  const ids: string[] = [];
  for (let cursor = from; ; ) {
    const page = await window.read({
      ...(cursor && { from: cursor }),
      max,
      maxCharacters: CHARACTERS,
      direction,
      matches: () => true,
    });
    ids.push(...page.events.map(({ id }) => id));
    if (!page.hasMore) return { ids, cursor: page.cursor };
    cursor = page.cursor;
  }
}

describe("a window on the events of a session", () => {
  it("a window of events gives stored and ephemeral events in order, both ways, at every page size", async () => {
    const { window, say, hint } = stageWith(1_200);
    hint("a");
    say("b");
    hint("c");
    hint("d");
    say("e");
    const all = [...Array.from({ length: 1_200 }, (_, index) => `s${index}`), "a", "b", "c", "d", "e"];
    for (const max of [1, 7, 499, 500, 1_000]) {
      expect((await pagesOf(window, max, "forward")).ids).toEqual(all);
      expect((await pagesOf(window, max, "backward")).ids).toEqual([...all].reverse());
    }
  });

  it("a window of events continues from a cursor with newer events, and none twice", async () => {
    const { window, say, hint } = stageWith(3);
    const { cursor } = await pagesOf(window, 10, "forward");
    hint("a");
    say("b");
    expect((await pagesOf(window, 10, "forward", cursor)).ids).toEqual(["a", "b"]);
    expect((await pagesOf(window, 10, "forward", window.last)).ids).toEqual([]);
  });

  it("a window of events omits what a rewind removed, and an earlier cursor continues after it", async () => {
    const { window, say, hint, rewindTo } = stageWith(4);
    hint("a");
    say("b");
    hint("c");
    const { cursor } = await pagesOf(window, 10, "forward");
    rewindTo(2);
    say("rewound");
    say("d");
    expect((await pagesOf(window, 10, "forward", cursor)).ids).toEqual(["rewound", "d"]);
    expect((await pagesOf(window, 2, "forward")).ids).toEqual(["s0", "s1", "rewound", "d"]);
  });

  it("a window of events reads only a part of a long history for one page, and says that there is more", async () => {
    const { window } = stageWith(30_000);
    const page = await window.read({
      max: 5,
      maxCharacters: CHARACTERS,
      direction: "forward",
      matches: ({ id }) => id === "s29999",
    });
    expect(page).toMatchObject({ events: [], hasMore: true });
    let [cursor, pages, found] = [page.cursor, 1, [] as readonly SessionEvent[]];
    for (let hasMore = true; hasMore; pages++) {
      const next = await window.read({
        from: cursor,
        max: 5,
        maxCharacters: CHARACTERS,
        direction: "forward",
        matches: ({ id }) => id === "s29999",
      });
      [cursor, hasMore, found] = [next.cursor, next.hasMore, next.events];
    }
    expect(found.map(({ id }) => id)).toEqual(["s29999"]);
    expect(pages).toBeLessThan(6);
  });
});
