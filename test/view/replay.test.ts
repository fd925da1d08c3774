import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { Replay } from "../../src/view/replay.ts";
import { syntheticEvents } from "./synthetic.ts";

const stored = [...syntheticEvents(1_500)].filter(({ ephemeral }) => ephemeral !== true);
const isTurn = ({ type }: SessionEvent): boolean => type === "assistant.turn_start";

describe("a replay", () => {
  it("a replay shows a growing log like the whole one, however many checkpoints it has", () => {
    const whole = new Replay(stored);
    const growing = new Replay([], 1);
    for (const [index, event] of stored.entries()) {
      growing.append(event);
      if (index % 50 === 0) growing.at(index + 1);
    }
    for (const at of [0, 1, 137, 500, stored.length - 1, stored.length])
      expect(growing.at(at).view, `${at}`).toEqual(whole.at(at).view);
  });

  it("a replay follows a rewind that is appended later", () => {
    const parentId = stored[9]?.id ?? null;
    const rewound = { ...stored[20], id: "rewound", parentId, type: "troupe.rewound", data: { eventsRemoved: 10 } };
    const first = stored.slice(0, 20);
    const growing = new Replay(first, 4);
    growing.at(20);
    growing.append(rewound as SessionEvent);
    expect(growing.at(21).view).toEqual(new Replay([...first, rewound as SessionEvent]).at(21).view);
    expect(growing.at(21).view.needsReload).toBe(false);
    expect(growing.at(20).view.sequence).toBe(20);
    expect(growing.at(21).view.sequence).toBe(11);
  });

  it("a replay steps from one matching event to the next, and back to the previous one", () => {
    const replay = new Replay(stored);
    const turns = stored.flatMap((event, index) => (isTurn(event) ? [index + 1] : []));
    const [first = 0, second = 0, third = 0] = turns;
    expect(replay.step(0, 1, isTurn)).toBe(first);
    expect(replay.step(first, 1, isTurn)).toBe(second);
    expect(replay.step(third, -1, isTurn)).toBe(second);
    // Between two turns the second is shown, so a step back leads to the first.
    expect(replay.step(third - 1, -1, isTurn)).toBe(first);
    expect(replay.step(first, -1, isTurn)).toBeUndefined();
    expect(replay.step(stored.length, 1, isTurn)).toBeUndefined();
  });

  it("a prepared replay creates every checkpoint once, also for events that came later", () => {
    const replay = new Replay(stored.slice(0, 250), 100);
    expect([...replay.prepare()]).toEqual([100, 200]);
    for (const event of stored.slice(250, 350)) replay.append(event);
    expect([...replay.prepare()]).toEqual([300]);
    expect([...replay.prepare()]).toEqual([]);
  });
});
