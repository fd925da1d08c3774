import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { type FaultPlan, faultDisk } from "../../src/testing/fault-disk.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf, echo, stage } from "../support/stage.ts";

/** One run with a fault at operation `at`; then the fault is over, and the same session goes on. */
async function run(plan: FaultPlan): Promise<boolean> {
  await using folder = await tempFolder();
  const store = jsonlStore({ root: folder.path, disk: faultDisk(nodeDisk, plan), stamp: systemStamp });
  const made = await stage(
    [calls(["echo", { text: "a" }], ["echo", { text: "b" }]), says("one"), otherwise(says("again"))],
    {
      store,
      tools: [echo],
      stamp: systemStamp,
    },
  );
  const { session, heard } = made;
  const first = await session
    .sendAndWait({ prompt: "first" })
    .catch((error: unknown) => ({ kind: "refused", error }) as const);
  if (first.kind === "failed") {
    expect(first.error).toMatchObject({ name: "TroupeError", kind: "storage" });
    expect(dataOf(heard, "session.error")).toMatchObject([{ errorType: "persistence" }]);
    expect(heard.at(-1)?.type).toBe("session.idle");
  }
  await session.queue.whenIdle();
  plan.healed = true;
  if (!plan.fired) {
    await session.close().catch(() => undefined);
    return false;
  }
  // The process is alive, and as soon as there is room the session goes on where it was.
  expect(await session.sendAndWait({ prompt: "second" })).toMatchObject({ kind: "done" });
  const told = heard.filter(({ ephemeral }) => !ephemeral).map(({ id }) => id);
  await session.close();

  const { events, damage } = await store.read("session-1");
  expect(damage).toEqual([]);
  expect(events.map(({ id }) => id)).toEqual(session.events.map(({ id }) => id));
  expect(told.filter((id) => !events.some((event) => event.id === id))).toEqual([]);
  expect(events.map(({ parentId }) => parentId)).toEqual([null, ...events.slice(0, -1).map(({ id }) => id)]);
  expectPaired(events);
  return true;
}

describe.each([
  ["full disk", "ENOSPC"],
  ["broken disk", "EIO"],
])("%s at every operation", (_name, code) => {
  it.each([
    ["once", false],
    ["until it is repaired", true],
  ])("a session survives a disk that fails at every operation: %s", async (_name, lasting) => {
    let at = 1;
    while (await run({ at, fault: { kind: "fail", code, lasting } })) at++;
    expect(at).toBeGreaterThan(8);
  });
});

describe("a notice that cannot be written", () => {
  /** Returns the notices in the log and in the last request, or undefined if the fault was not reached. */
  async function notices(plan: FaultPlan, wakes: boolean) {
    await using folder = await tempFolder();
    const store = jsonlStore({ root: folder.path, disk: faultDisk(nodeDisk, plan), stamp: systemStamp });
    const { session, model } = await stage([otherwise(says("heard"))], { store, tools: [echo], stamp: systemStamp });
    session.queue.notify({ content: "the build is done", kind: { type: "unclassified" } }, { wakes });
    await session.sendAndWait({ prompt: "first" }).catch(() => undefined);
    await session.queue.whenIdle();
    if (!plan.fired) return session.close().catch(() => undefined);
    expect(await session.sendAndWait({ prompt: "second" })).toMatchObject({ kind: "done" });
    await session.close();
    const { events } = await store.read("session-1");
    const sent = JSON.stringify(model.requests.at(-1)?.messages).split("the build is done").length - 1;
    return { logged: dataOf(events, "system.notification").length, sent };
  }

  it.each([
    ["wakes nobody", false],
    ["wakes the agent", true],
  ])("a notice that cannot be written reaches the model and the log exactly once when it %s", async (_name, wakes) => {
    for (let at = 1; ; at++) {
      const found = await notices({ at, fault: { kind: "fail", code: "ENOSPC" } }, wakes);
      if (!found) return expect(at).toBeGreaterThan(4);
      expect({ at, ...found }).toEqual({ at, logged: 1, sent: 1 });
    }
  });
});
