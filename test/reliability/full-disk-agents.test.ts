import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { forAgent, otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { type FaultPlan, faultDisk } from "../../src/testing/fault-disk.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { agentPool, agentsWithoutEnd, task } from "../support/agent-pool.ts";
import { tool } from "../support/stage.ts";

/** The short version breaks every third operation of the disk. */
const STRIDE = process.env.TROUPE_SLOW === undefined ? 3 : 1;
/** How long the disk is full. */
const FULL_MS = 60;

const work = tool("work", async () => "worked");

/** One prompt with one subagent, and a disk that is full from operation `at` on for a moment. False when it never got there. */
async function run(at: number, more: { readonly isReadOnly: boolean }): Promise<boolean> {
  await using folder = await tempFolder();
  const plan: FaultPlan = { at, fault: { kind: "fail", code: "ENOSPC", lasting: true } };
  const store = jsonlStore({ root: folder.path, disk: faultDisk(nodeDisk, plan), stamp: systemStamp });
  const steps = [
    task("scout", "explorer"),
    forAgent("scout", calls(["work", {}], ["work", {}]), says("Found it.")),
    otherwise(says("Done.")),
  ];
  const made = await agentPool(steps, { store, tools: [{ ...work, readOnly: more.isReadOnly }] }).catch(
    () => undefined,
  );
  if (!made) return true; // there was no room for a session at all
  const healing = setInterval(() => {
    if (plan.fired) setTimeout(() => Object.assign(plan, { healed: true }), FULL_MS);
  }, 1);
  try {
    await made.session.sendAndWait({ prompt: "first" }).catch(() => undefined);
    await expect.poll(() => plan.healed ?? !plan.fired).toBe(true);
    await made.session.queue.whenIdle();
    const problem = await made.session.close().catch((error: unknown) => error);
    if (problem !== undefined) {
      // The last words found no room either: that is said, and the next process has them.
      expect(problem).toMatchObject({ kind: "storage" });
      plan.healed = true;
      await (await agentPool([], { store, resume: "session-1" })).session.close();
    }
  } finally {
    clearInterval(healing);
  }
  const { events, damage } = await store.read("session-1");
  expect(damage).toEqual([]);
  expectPaired(events);
  expect(agentsWithoutEnd(events)).toEqual([]);
  return plan.fired === true;
}

describe("a disk that is full for a moment while a subagent works", () => {
  it.each([
    ["reads", true],
    ["has effects", false],
  ])(
    "a disk that is full for a moment leaves no call and no agent without an end, with a tool that %s",
    async (_, isReadOnly) => {
      let at = 1;
      while (await run(at, { isReadOnly })) at += STRIDE;
      expect(at).toBeGreaterThan(20);
    },
  );
});
