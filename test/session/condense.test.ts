import { describe, expect, it } from "vitest";
import { noUsage } from "../../src/model/provider.ts";
import type { EventType, SessionEvent } from "../../src/protocol/event.ts";
import { condense, tallyOf } from "../../src/session/compaction/condense.ts";
import { visibleEvents } from "../../src/store/log/rewound.ts";
import { seeded } from "../store/support.ts";
import { foldAll, randomLog } from "./random-log.ts";

const COMPACT_EVERY = 20;
const [LOGS, AGAIN] = process.env.TROUPE_SLOW === undefined ? [50, 20] : [150, 60];

/** A question and its answer with one call, and now and then a compaction. */
function oneTurn(turn: number): SessionEvent[] {
  const toolCallId = `call-${turn}`;
  const data: [EventType, object][] = [
    ["user.message", { content: `question ${turn} ${"x".repeat(500)}` }],
    ["assistant.turn_start", { turnId: "0" }],
    [
      "troupe.usage",
      { ...{ provider: "p", model: "m", turnId: "0", attempts: 1, durationMs: 1, costUsd: 0.001 }, ...noUsage },
    ],
    [
      "assistant.message",
      { messageId: `m${turn}`, content: "", toolRequests: [{ toolCallId, name: "view", arguments: {} }] },
    ],
    ["tool.execution_start", { toolCallId, toolName: "view", arguments: {} }],
    ["tool.execution_complete", { toolCallId, success: true, result: { content: "r".repeat(200) } }],
    ["assistant.turn_end", { turnId: "0" }],
  ];
  if (turn % COMPACT_EVERY === COMPACT_EVERY - 1)
    data.push([
      "session.compaction_complete",
      { success: true, checkpointNumber: turn, summaryContent: "summary ".repeat(50) },
    ]);
  return data.map(([type, what], index) => ({
    ...{ id: `${turn}-${index}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: null, type, data: what },
  })) as SessionEvent[];
}

describe("a condensed list of events", () => {
  it(`a condensed list of events gives the same state as the whole list (${LOGS} logs)`, async () => {
    for (let seed = 1; seed <= LOGS; seed++) {
      const random = seeded(seed);
      const { events } = visibleEvents(randomLog(random, 20 + Math.floor(random() * 250), { rewinds: seed % 3 === 0 }));
      const expected = await foldAll(events);
      for (let round = 0; round < 4; round++) {
        const cut = Math.floor(random() * events.length);
        const condensed = JSON.parse(JSON.stringify(condense(events.slice(0, cut)))) as typeof events;
        expect(await foldAll([...condensed, ...events.slice(cut)]), `seed ${seed}, cut ${cut}`).toEqual(expected);
      }
    }
  });

  it(`a condensed list of events can be condensed again and again with the same result (${AGAIN} logs)`, async () => {
    for (let seed = 1; seed <= AGAIN; seed++) {
      const random = seeded(1000 + seed);
      const events = randomLog(random, 300);
      let list = events.slice(0, 0);
      for (const [index, event] of events.entries()) {
        list = [...list, event];
        if (random() < 0.1) list = [...condense(list)];
        if (index === events.length - 1) list = [...condense(condense(list))];
      }
      expect(await foldAll(list), `seed ${seed}`).toEqual(await foldAll(events));
      expect(tallyOf(list)).toEqual(tallyOf(events));
    }
  });

  it("a condensed list of events does not grow with the history of a compacted session", () => {
    const turnsOf = (count: number): SessionEvent[] => Array.from({ length: count }, (_, turn) => oneTurn(turn)).flat();
    const [short, long] = [400, 4_000].map((count) => JSON.stringify(condense(turnsOf(count))).length) as [
      number,
      number,
    ];
    // Each compaction leaves one short event.
    expect(long).toBeLessThan(short + (4_000 / COMPACT_EVERY) * 300);
  });

  it("a condensed list of events begins and ends with events of the log itself", () => {
    const events = randomLog(seeded(3), 200);
    const condensed = condense(events);
    expect(condensed.length).toBeLessThan(events.length);
    expect([condensed[0], condensed.at(-1)]).toEqual([events[0], events.at(-1)]);
  });
});
