import { expect, it } from "vitest";
import { BlockQueue } from "./block-queue.ts";

const live = new AbortController().signal;

it("a block queue rejects its callers with an error that would repeat, and serves the next ones", async () => {
  let steps = 0;
  const queue = new BlockQueue<string, string>(async (waiting) => {
    if (++steps === 1) throw new TypeError("rows is undefined");
    for (const waiter of waiting) waiter.admit("right");
    return 0;
  });
  await expect(queue.enter("one", live)).rejects.toThrow("rows is undefined");
  expect(await queue.enter("two", live)).toBe("right");
  expect(steps).toBe(2);
});

it("a block queue repeats a step after an outage and after a deadlock", async () => {
  const errors = [
    Object.assign(new Error("away"), { code: "ECONNREFUSED" }),
    Object.assign(new Error(), { code: "40P01" }),
  ];
  const queue = new BlockQueue<string, string>(async (waiting) => {
    const error = errors.shift();
    if (error) throw error;
    for (const waiter of waiting) waiter.admit("right");
    return 0;
  });
  const entered = queue.enter("one", live);
  const waking = setInterval(() => queue.wake(), 5);
  expect(await entered).toBe("right");
  clearInterval(waking);
});
