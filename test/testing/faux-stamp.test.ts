import { describe, expect, it } from "vitest";
import { fauxStamp, virtualClock } from "../../src/testing/index.ts";

const start = Date.UTC(2026, 0, 1);

describe("fauxStamp", () => {
  it("fauxStamp counts ids per prefix and advances with each look at the clock", async () => {
    const stamp = fauxStamp();
    expect([stamp.id("evt"), stamp.id("msg"), stamp.id("evt")]).toEqual(["evt-1", "msg-1", "evt-2"]);
    expect([stamp.now(), stamp.now()]).toEqual([start, start + 1000]);
    await stamp.sleep(60_000);
    expect([stamp.now(), stamp.monotonic()]).toEqual([start + 62_000, 60_000]);
    await expect(stamp.sleep(1, AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
  });
});

describe("virtualClock", () => {
  it("virtualClock wakes sleepers in the order of their time, and equal ones in the order of arrival", async () => {
    const clock = virtualClock();
    const woken: string[] = [];
    const sleep = (name: string, ms: number) => clock.sleep(ms).then(() => woken.push(`${name} ${clock.monotonic()}`));
    void sleep("late", 30);
    void sleep("first", 10);
    void sleep("second", 10);
    void sleep("now", -5);
    expect(clock.pending.map(({ dueMs }) => dueMs)).toEqual([0, 10, 10, 30]);
    await clock.advance(9);
    expect(woken).toEqual(["now 0"]);
    await clock.advance(1);
    expect(woken).toEqual(["now 0", "first 10", "second 10"]);
    await clock.advance(100);
    expect(woken).toEqual(["now 0", "first 10", "second 10", "late 30"]);
    expect([clock.monotonic(), clock.now()]).toEqual([110, start + 110]);
  });

  it("virtualClock counts sleeps that begin while time moves on", async () => {
    const clock = virtualClock();
    const times: number[] = [];
    const loop = (async () => {
      for (let round = 0; round < 5; round++) {
        await clock.sleep(10);
        times.push(clock.monotonic());
      }
    })();
    await clock.advance(25);
    expect(times).toEqual([10, 20]);
    expect(clock.pending).toEqual([{ milliseconds: 10, dueMs: 30 }]);
    await clock.runAll();
    await loop;
    expect(times).toEqual([10, 20, 30, 40, 50]);
    expect(clock.pending).toEqual([]);
  });

  it("virtualClock lets a sleeper be aborted, before and during its sleep", async () => {
    const clock = virtualClock();
    const abort = new AbortController();
    const sleeping = clock.sleep(10, abort.signal);
    void clock.sleep(20);
    abort.abort(new Error("enough"));
    await expect(sleeping).rejects.toThrow("enough");
    await expect(clock.sleep(1, abort.signal)).rejects.toThrow("enough");
    expect(clock.pending).toEqual([{ milliseconds: 20, dueMs: 20 }]);
  });

  it("virtualClock stops a loop that would run forever", async () => {
    const clock = virtualClock();
    const forever = async (): Promise<never> => {
      for (;;) await clock.sleep(1);
    };
    void forever();
    await expect(clock.runAll(10)).rejects.toThrow("still asleep after 10 sleeps");
  });

  it("virtualClock reports when enough sleepers are asleep, or that they are not", async () => {
    const clock = virtualClock();
    const two = clock.untilAsleep(2);
    void clock.sleep(1);
    setImmediate(() => void clock.sleep(1));
    await two;
    await expect(clock.untilAsleep(3, 5)).rejects.toThrow("2 asleep, not 3, after 5 ms");
  });
});
