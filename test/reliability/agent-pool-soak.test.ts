import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";
import { buildProgram, runProgram } from "./agent-pool-build.ts";
import { agentPoolStore } from "./agent-pool-stage.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
const tasks = slow ? 500 : 60;
const kills = slow ? 12 : 2;
const killWithinMs = slow ? 3_000 : 700;
const settled = { settled: true, maxConcurrency: 12 } as const;
let folder: Awaited<ReturnType<typeof tempFolder>>;

beforeEach(async () => {
  folder = await tempFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

/** Lives, dies and lives again until everyone may come to rest. */
async function lives() {
  const program = join(folder.path, "soak.mjs");
  await buildProgram("test/reliability/agent-pool-soak-program.ts", program);
  const root = join(folder.path, "soak");
  mkdirSync(root);
  let cutOff = 0;
  const seed = Number(process.env.TROUPE_SEED ?? 11);
  for (let life = 0; life < kills; life++) {
    const wanted = Math.ceil((tasks * (life + 1)) / (kills + 1));
    const killAfterMs = killWithinMs * (0.3 + (((seed + life) * 37) % 70) / 100);
    const ended = await runProgram(program, [root, `${seed + life}`, `${wanted}`, "live"], { killAfterMs });
    expect(ended.errors).toBe("");
    if (!ended.finished) cutOff++;
  }
  const last = await runProgram(program, [root, `${seed + kills}`, `${tasks}`, "rest"]);
  const { events, damage } = await agentPoolStore(root).read("one");
  expect(damage).toEqual([]);
  return { events, last, cutOff };
}

/** From the log alone, and without the checker: who was made, and how often each ended. */
function endsOf(events: readonly SessionEvent[]): Map<string, number> {
  const ends = new Map(dataOf(events, "troupe.task_created").map(({ taskId }) => [taskId, 0]));
  for (const { taskId, to } of dataOf(events, "troupe.task_state")) {
    if (to === "completed" || to === "failed" || to === "cancelled") ends.set(taskId, (ends.get(taskId) ?? 0) + 1);
  }
  return ends;
}

describe(`${tasks} agents in a process that is killed ${kills} times`, () => {
  it("agents in a process that is killed repeatedly have one end or are idle, and are reported once", {
    timeout: 600_000,
  }, async () => {
    const { events, last, cutOff } = await lives();
    expect(last).toMatchObject({ finished: true, errors: "" });
    expect(checkTasks(events, settled)).toEqual([]);
    expectPaired(events);
    const ends = endsOf(events);
    expect(ends.size).toBeGreaterThanOrEqual(tasks);
    expect([...ends.values()].filter((count) => count > 1)).toEqual([]);
    expect(cutOff).toBe(kills);
    const reasons = dataOf(events, "troupe.task_state").map(({ reason }) => reason);
    for (const reason of ["finished", "empty", "error", "stopped", "interrupted"]) expect(reasons).toContain(reason);
    // Whoever has much to say and to hear is summarised meanwhile, and loses nobody by it.
    const summarised = events.flatMap(({ type, data, agentId }) =>
      type === "session.compaction_complete" && data.success ? [agentId ?? "main"] : [],
    );
    expect(summarised).toContain("main");
    const seen = new Set(events.map(({ type }) => type));
    for (const type of ["system.notification", "troupe.task_message", "troupe.task_notice_delivered", "abort"] as const)
      expect(seen).toContain(type);
  });
});
