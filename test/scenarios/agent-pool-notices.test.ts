import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls, type WantedCall } from "../../src/model/faux/faux-step.ts";
import { TroupeError } from "../../src/protocol/errors.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { openAgentPool } from "../reliability/agent-pool-stage.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";

const task = (name: string): WantedCall => [
  "task",
  { description: "work", prompt: "work", agent_type: "worker", name, mode: "background" },
  `task-${name}`,
];

describe("a disk that is full when a notice is delivered", () => {
  it.each([
    ["to an idle main agent", false],
    ["to one at work", true],
  ])("a full disk delays a notice and later ones, which are then delivered once: %s", async (_name, isAtWork) => {
    await using folder = await tempFolder();
    const root = join(folder.path, "root");
    mkdirSync(root);
    const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
    let failures = 0;
    const provider = fauxModel(
      calls(task("one"), task("two"), task("three")),
      otherwise(({ system }) => {
        if (system.includes("worker")) return stalls(pause(isAtWork ? 0 : 30), says("found"));
        return stalls(
          pause(isAtWork ? 60 : 0),
          isAtWork && failures === 0 ? calls(["list_agents", {}]) : says("heard"),
        );
      }),
    );
    const session = await openAgentPool({
      ...{ root, mode: "create", provider, agents: ["worker"], tools: [] },
      beforeStoring: async ({ type }) => {
        if (type === "system.notification" && failures++ === 0) throw new TroupeError("storage", "no room");
      },
    });
    await session.sendAndWait({ prompt: "go" });
    await session.agents.tasks?.waitForAll(60_000);
    await session.sendAndWait({ prompt: "and now?" });
    await session.queue.whenIdle();
    expect(failures).toBeGreaterThan(1);
    const told = dataOf(session.events, "system.notification").map(({ kind }) => "agentId" in kind && kind.agentId);
    expect([...told].sort()).toEqual(["one", "three", "two"]);
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
    await session.close();
  });
});
