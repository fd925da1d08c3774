import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { foldSchedules, ScheduleRegistry } from "../../src/session/modes/schedules.ts";
import { type VirtualClock, virtualClock } from "../../src/testing/faux-stamp.ts";

const MINUTE = 60_000;

interface Log {
  readonly type: string;
  readonly timestamp: string;
  readonly data: unknown;
}

function stage(options: { log?: Log[]; clock?: VirtualClock; answerMs?: number; fails?: boolean } = {}) {
  const log = options.log ?? [];
  const clock = options.clock ?? virtualClock();
  const sent: string[] = [];
  const trouble: unknown[] = [];
  const start = clock.now();
  const registry = ScheduleRegistry.restored([...log], {
    stamp: clock,
    async record(type, data) {
      log.push({ type, timestamp: new Date(clock.now()).toISOString(), data });
    },
    async enqueue(prompt) {
      sent.push(`${(clock.now() - start) / 1000}s ${prompt}`);
      if (options.fails) throw new Error("closed");
      if (options.answerMs !== undefined) await clock.sleep(options.answerMs);
    },
    onTrouble: (error) => trouble.push(error),
  });
  return { registry, clock, sent, log, trouble };
}

const request = (prompt: string, intervalMs: number, recurring: boolean) => ({
  prompt,
  displayPrompt: prompt,
  intervalMs,
  recurring,
});

describe("schedules", () => {
  it("schedules send a recurring prompt each time, and a one-shot once", async () => {
    const { registry, clock, sent, log } = stage();
    await registry.add(request("look", MINUTE, true));
    await registry.add(request("greet", 90_000, false));
    expect(registry.list().map(({ id, nextRunAt }) => [id, nextRunAt - clock.now()])).toEqual([
      [1, MINUTE],
      [2, 90_000],
    ]);
    await clock.advance(4 * MINUTE);
    expect(sent).toEqual(["60s look", "90s greet", "120s look", "180s look", "240s look"]);
    expect(registry.list().map(({ id }) => id)).toEqual([1]);
    expect(log.map(({ type, data }) => [type, data])).toEqual([
      [
        "session.schedule_created",
        { id: 1, prompt: "look", intervalMs: MINUTE, recurring: true, displayPrompt: "look", origin: "user" },
      ],
      [
        "session.schedule_created",
        {
          id: 2,
          prompt: "greet",
          intervalMs: 90_000,
          recurring: false,
          displayPrompt: "greet",
          at: Date.UTC(2026, 0, 1) + 90_000,
          origin: "user",
        },
      ],
      ["session.schedule_cancelled", { id: 2 }],
    ]);
    registry.dispose();
  });

  it("schedules do not repeat a prompt that is still being answered, and skip missed ones", async () => {
    const { registry, clock, sent } = stage({ answerMs: 150_000 });
    await registry.add(request("slow", MINUTE, true));
    await clock.advance(8 * MINUTE);
    expect(sent).toEqual(["60s slow", "240s slow", "420s slow"]);
    registry.dispose();
  });

  it("schedules can be stopped, and ids are not used again", async () => {
    const { registry, clock, sent, log } = stage();
    await registry.add(request("a", MINUTE, true));
    expect(await registry.stop(1)).toMatchObject({ id: 1, prompt: "a" });
    expect(await registry.stop(1)).toBeUndefined();
    expect(await registry.add(request("b", MINUTE, true))).toMatchObject({ id: 2 });
    await registry.cancelAll();
    await clock.advance(5 * MINUTE);
    expect(sent).toEqual([]);
    expect(clock.pending).toEqual([]);
    expect(foldSchedules(log)).toEqual({ left: [], lastId: 2 });
  });

  it("schedules stop at the end of the session, and stay in its log", async () => {
    const { registry, clock, sent, log, trouble } = stage();
    await registry.add(request("a", MINUTE, true));
    registry.dispose();
    await clock.advance(5 * MINUTE);
    expect({ sent, trouble }).toEqual({ sent: [], trouble: [] });
    await expect(registry.add(request("b", MINUTE, true))).rejects.toThrow("closed");
    expect(foldSchedules(log).left).toHaveLength(1);
  });

  it("schedules continue after a resume: a missed one-shot is sent at once, and missed rounds are skipped", async () => {
    const first = stage();
    await first.registry.add(request("round", MINUTE, true));
    await first.registry.add(request("once", 2 * MINUTE, false));
    await first.registry.add(request("later", 60 * MINUTE, false));
    first.registry.dispose();

    const clock = virtualClock({ start: Date.UTC(2026, 0, 1) + 10 * MINUTE + 15_000 });
    const second = stage({ log: first.log, clock });
    await clock.advance(2 * MINUTE);
    expect(second.sent).toEqual(["0s once", "45s round", "105s round"]);
    expect(await second.registry.add(request("new", MINUTE, false))).toMatchObject({ id: 4 });
    second.registry.dispose();

    const third = stage({ log: first.log, clock: virtualClock({ start: Date.UTC(2026, 0, 1) + 59 * MINUTE }) });
    await third.clock.advance(90_000);
    expect(third.sent).toEqual(["0s new", "60s round", "60s later"]);
    third.registry.dispose();
  });

  it("schedules log their end before they are sent, so that none is sent twice", async () => {
    const { registry, clock, log, sent, trouble } = stage({ fails: true });
    await registry.add(request("once", MINUTE, false));
    await clock.advance(MINUTE);
    expect(sent).toEqual(["60s once"]);
    expect(trouble).toHaveLength(1);
    expect(foldSchedules(log).left).toEqual([]);
  });

  it("schedules continue after a round that could not be sent", async () => {
    const { registry, clock, sent, trouble } = stage({ fails: true });
    await registry.add(request("round", MINUTE, true));
    await clock.advance(3 * MINUTE);
    expect([sent.length, trouble.length]).toEqual([3, 3]);
    registry.dispose();
  });

  it("the number of schedules and their times are limited", async () => {
    const { registry } = stage();
    for (const wrong of [
      request("a", 9_999, true),
      request("a", 86_400_001, true),
      request("/review", MINUTE, true),
      request(" ", MINUTE, true),
      request("a", Number.NaN, true),
    ]) {
      await expect(registry.add(wrong)).rejects.toThrow(expect.objectContaining({ kind: "usage" }));
    }
    for (let count = 0; count < 50; count++) await registry.add(request("a", MINUTE, true));
    await expect(registry.add(request("a", MINUTE, true))).rejects.toThrow("At most 50 prompts");
    registry.dispose();
  });

  it("schedules do not exist when they could not be written to the log", async () => {
    const clock = virtualClock();
    const registry = new ScheduleRegistry({
      stamp: clock,
      record: () => Promise.reject(new Error("disk full")),
      enqueue: () => Promise.reject(new Error("not reached")),
      onTrouble: () => undefined,
    });
    await expect(registry.add(request("a", MINUTE, true))).rejects.toThrow("disk full");
    expect([registry.list(), clock.pending]).toEqual([[], []]);
  });

  it("schedules are ignored when a log is read if they are damaged or of unknown kinds", () => {
    const created = (data: unknown, timestamp = "2026-01-01T00:00:00Z") => ({
      type: "session.schedule_created",
      timestamp,
      data,
    });
    const events = [
      created({ id: 7, prompt: "cron", cron: "* * * * *" }),
      created({ id: 8, prompt: "fast", intervalMs: 5, recurring: true }),
      created({ id: 9, prompt: "/review", intervalMs: MINUTE }),
      created({ id: 10, prompt: "ok", intervalMs: MINUTE }),
      created({ id: 11, prompt: "when?", intervalMs: MINUTE }, "never"),
      created({ id: "12", prompt: "x", intervalMs: MINUTE }),
      created(null),
    ];
    const { left, lastId } = foldSchedules(events);
    expect(left.map(({ created: { id, recurring } }) => [id, recurring])).toEqual([[10, false]]);
    expect(lastId).toBe(11);
  });

  it("schedules keep their times and never send a one-shot twice, however often the session is resumed", async () => {
    const life = fc.record({
      openMs: fc.integer({ min: 0, max: 200_000 }),
      closedMs: fc.integer({ min: 0, max: 200_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 6 }), async (lives) => {
        const log: Log[] = [];
        const all: { prompt: string; at: number }[] = [];
        let now = Date.UTC(2026, 0, 1);
        const begin = now;
        for (const [index, { openMs, closedMs }] of lives.entries()) {
          const clock = virtualClock({ start: now });
          const at = stage({ log, clock });
          if (index === 0) {
            await at.registry.add(request("round", 30_000, true));
            await at.registry.add(request("once", 45_000, false));
          }
          await clock.advance(openMs);
          at.registry.dispose();
          for (const line of at.sent) {
            const [seconds = "", prompt = ""] = line.split("s ");
            all.push({ prompt, at: now - begin + Number(seconds) * 1000 });
          }
          now += openMs + closedMs;
        }
        expect(all.filter(({ prompt }) => prompt === "once").length).toBeLessThanOrEqual(1);
        expect(all.filter(({ prompt, at }) => prompt === "round" && Math.round(at) % 30_000 !== 0)).toEqual([]);
        const rounds = all.filter(({ prompt }) => prompt === "round").map(({ at }) => Math.round(at));
        expect(new Set(rounds).size).toBe(rounds.length);
      }),
      { numRuns: 40 },
    );
  });
});
