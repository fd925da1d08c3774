import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { openAgentPool } from "../reliability/agent-pool-stage.ts";

const start = calls(["task", { description: "work", prompt: "work", agent_type: "worker", name: "worker" }]);

describe("an answer that is stopped", () => {
  it("a stopped answer leaves no agent running, even one that is just being started, and stays stopped", async () => {
    await using folder = await tempFolder();
    const root = join(folder.path, "root");
    mkdirSync(root);
    const provider = fauxModel(
      start,
      otherwise(({ system }) => (system.includes("worker") ? stalls() : says("again"))),
    );
    const written = deferred<void>();
    const session = await openAgentPool({
      ...{ root, mode: "create", provider, agents: ["worker"], tools: [] },
      beforeStoring: async ({ type }) => {
        if (type !== "troupe.task_created") return;
        session.abort();
        await new Promise((resolve) => setTimeout(resolve, 20));
        written.resolve();
      },
    });
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "aborted" });
    await written.promise;
    await expect.poll(() => session.agents.tasks?.view("worker")?.status).toBe("cancelled");
    expect(provider.requests.filter(({ system }) => !system.includes("worker"))).toHaveLength(1);

    expect(await session.sendAndWait({ prompt: "and now?" })).toEqual({ kind: "done", answer: "again" });
    const last = provider.requests.at(-1)?.messages ?? [];
    expect(last.filter(({ content }) => content.includes('Agent "worker"'))).toHaveLength(1);
    await session.close();
  });
});
