import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Slots } from "../../src/tasks/slots.ts";

const never = new AbortController().signal;

describe("places", () => {
  it("slots go to the longest waiting task, and an aborted wait leaves the queue", async () => {
    const slots = new Slots({ maxConcurrency: 1, whenFull: "queue" });
    const served: string[] = [];
    const stop = new AbortController();
    const take = (id: string, signal = never): void => {
      slots.take(id, signal).then(
        () => served.push(id),
        () => served.push(`${id} left`),
      );
    };
    take("a");
    take("b", stop.signal);
    take("c");
    expect([slots.holds("a"), slots.isFull, slots.waiting]).toEqual([true, true, ["b", "c"]]);
    stop.abort();
    slots.release("a");
    slots.release("a");
    await Promise.resolve();
    expect(slots.holds("c")).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(served.sort()).toEqual(["a", "b left", "c"]);
    slots.release("c");
    expect(slots.isFull).toBe(false);
  });

  it("slots are lent down a chain and returned, in any order of release", () => {
    for (const order of [
      ["c", "b", "a"],
      ["a", "b", "c"],
      ["b", "a", "c"],
    ]) {
      const slots = new Slots({ maxConcurrency: 1, whenFull: "queue" });
      void slots.take("a", never);
      void slots.take("b", never);
      void slots.take("other", never);
      slots.lend("a", "b");
      void slots.take("c", never);
      slots.lend("b", "c");
      expect(["a", "b", "c", "other"].map((id) => slots.holds(id))).toEqual([true, true, true, false]);
      for (const [index, id] of order.entries()) {
        expect(slots.holds("other")).toBe(false);
        slots.release(id);
        expect(slots.holds("other")).toBe(index === 2);
      }
    }
  });

  it("slots are never more than the limit, and no task waits while one is free", () => {
    const step = fc.record({ what: fc.constantFrom("take", "release", "leave"), who: fc.nat(9) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (maxConcurrency, steps) => {
        const slots = new Slots({ maxConcurrency, whenFull: "queue" });
        const stops = new Map<string, AbortController>();
        for (const { what, who } of steps) {
          const id = `t${who}`;
          if (what === "release") slots.release(id);
          if (what === "leave" && slots.waiting.includes(id)) stops.get(id)?.abort();
          if (what === "take" && !slots.holds(id) && !slots.waiting.includes(id)) {
            const stop = new AbortController();
            stops.set(id, stop);
            slots.take(id, stop.signal).catch(() => undefined);
          }
          const holders = Array.from({ length: 10 }, (_, index) => slots.holds(`t${index}`)).filter(Boolean).length;
          expect(holders).toBeLessThanOrEqual(maxConcurrency);
          if (slots.waiting.length > 0) expect(holders).toBe(maxConcurrency);
        }
      }),
    );
  });
});
