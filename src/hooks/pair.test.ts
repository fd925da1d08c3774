import { describe, expect, it } from "vitest";
import { deferred } from "../lib/deferred.ts";
import { blockGuard, createPair, type Ended, paired } from "./pair.ts";

function recorded(start: () => Promise<string> = async () => "started") {
  const told: string[] = [];
  return {
    told,
    parts: {
      start: () => {
        told.push("start a-1");
        return start();
      },
      stop: async (ending: Ended<string>) => {
        told.push(`stop a-1 ${ending.ok ? ending.value : ending.error}`);
        return told.length;
      },
    },
  };
}

describe("a pair", () => {
  it("stops once, with its own id, when all goes well", async () => {
    const { told, parts } = recorded();
    expect(await paired(parts, async (started) => `${started} and done`)).toBe("started and done");
    expect(told).toEqual(["start a-1", "stop a-1 started and done"]);
  });

  it.each([
    ["the work throws", recorded(), async () => Promise.reject("broken")],
    ["the start throws", recorded(() => Promise.reject("broken")), async () => "never"],
    ["the start is aborted", recorded(() => Promise.reject(AbortSignal.abort("broken").reason)), async () => "never"],
  ])("stops once when %s, and the failure goes through", async (_, { told, parts }, work) => {
    await expect(paired(parts, work)).rejects.toBe("broken");
    expect(told).toEqual(["start a-1", "stop a-1 broken"]);
  });

  it("stops once, however often and from wherever it is stopped", async () => {
    const { told, parts } = recorded();
    const pair = createPair(parts);
    await pair.start();
    const ends = await Promise.all([1, 2, 3].map((count) => pair.stop({ ok: false, error: count })));
    expect(ends).toEqual([2, 2, 2]);
    expect(await pair.stop({ ok: true, value: "late" })).toBe(2);
    expect(told).toEqual(["start a-1", "stop a-1 1"]);
  });

  it("does not stop what never started, and starts once", async () => {
    const { told, parts } = recorded();
    const pair = createPair(parts);
    expect(await pair.stop({ ok: true, value: "" })).toBeUndefined();
    await Promise.all([pair.start(), pair.start()]);
    expect(told).toEqual(["start a-1"]);
  });

  it("stops after the start has ended, even when it is stopped while it starts", async () => {
    const started = deferred<string>();
    const { told, parts } = recorded(() => started.promise.finally(() => told.push("start ended")));
    const pair = createPair(parts);
    const starting = pair.start();
    const stopping = pair.stop({ ok: false, error: "killed" });
    started.resolve("x");
    await Promise.all([starting, stopping]);
    expect(told).toEqual(["start a-1", "start ended", "stop a-1 killed"]);
  });

  it("counts a stop that fails as the stop", async () => {
    let stops = 0;
    const pair = createPair({
      start: async () => undefined,
      stop: async () => {
        stops++;
        throw new Error("broken");
      },
    });
    await pair.start();
    await expect(pair.stop(undefined)).rejects.toThrow("broken");
    await expect(pair.stop(undefined)).rejects.toThrow("broken");
    expect(stops).toBe(1);
  });

  it("stays open when its stop is held up", async () => {
    const answers = ["block", "allow", "never"];
    const pair = createPair({
      start: async () => undefined,
      stop: async () => answers.shift(),
      isHeldUp: (answer) => answer === "block",
    });
    await pair.start();
    expect([await pair.stop(1), await pair.stop(2), await pair.stop(3)]).toEqual(["block", "allow", "allow"]);
  });
});

describe("ORC-55: a hook that always blocks", () => {
  it("ends after eight times", () => {
    const guard = blockGuard();
    const held: boolean[] = [];
    const active: boolean[] = [];
    do {
      active.push(guard.isActive);
      held.push(guard.holdsUp("block"));
    } while (held.at(-1));
    expect(held).toEqual([...Array(8).fill(true), false]);
    expect(active).toEqual([false, ...Array(8).fill(true)]);
    expect(guard.isActive).toBe(false);
  });

  it("restarts its count after a stop and after a user message", () => {
    const guard = blockGuard(2);
    const hold = (...decisions: ("block" | "allow" | undefined)[]) => decisions.map((one) => guard.holdsUp(one));
    expect(hold("block", "allow", "block", "block", "block")).toEqual([true, false, true, true, false]);
    expect(hold("block")).toEqual([true]);
    guard.reset();
    expect([guard.isActive, ...hold("block", "block", undefined)]).toEqual([false, true, true, false]);
  });
});
