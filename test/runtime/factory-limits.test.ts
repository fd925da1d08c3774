import { describe, expect, it } from "vitest";
import type { Factories } from "../../src/factories/factories.ts";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls } from "../../src/model/faux/faux-step.ts";
import { openFactories } from "../../src/runtime/setup/session-factories.ts";
import { agent } from "../support/agent.ts";
import { agentPool } from "../support/agent-pool.ts";

const again = calls(["echo", { text: "again" }]);

/** Runs a factory with one agent, labelled "cost-check", that never finishes by itself. */
async function run({ limits = {}, cost = 0 as number | null }) {
  const { session } = await agentPool([forAgent("checker", again, again, again)], {
    agents: [agent("checker", { limits })],
    model: { costOf: () => cost },
  });
  const meta = { name: "checks", description: "", phases: [] };
  let factories: Factories | undefined;
  const factory = {
    ...{ meta, owner: "me", isThere: () => true, abort: () => undefined },
    execute: async ({ runId, executionToken }: { runId: string; executionToken: string }) => {
      const from = { runId, executionToken, owner: "me" };
      const answer = await factories?.agent(from, "Check.", { label: "cost-check", agent: "checker" });
      return { result: answer ?? "no answer" };
    },
  };
  factories = await openFactories(session, { list: () => [meta], find: () => factory });
  const opened = factories;
  const { runId } = await opened.run("checks", {}, { maxAiCredits: 10 });
  await expect.poll(() => opened.get(runId).status).not.toBe("running");
  const ended = opened.get(runId);
  const limit = session.agents.tasks?.list().map(({ id }) => session.agents.tasks?.get(id)?.limit);
  await session.close();
  return { status: ended.status, failure: ended.failure, limit };
}

describe("an agent of a factory with a credit limit", () => {
  it("a factory's agent with a credit limit does not end the run at its limit of turns", async () => {
    expect(await run({ limits: { turns: 2 } })).toEqual({ status: "completed", failure: undefined, limit: ["turns"] });
  });

  it("a factory's agent with a credit limit ends the run when it has used up the credits", async () => {
    const { status, failure, limit } = await run({ cost: 0.06 });
    expect({ status, failure, limit }).toMatchObject({
      status: "error",
      failure: { kind: "maxAiCredits" },
      limit: ["cost"],
    });
  });

  it("a factory's agent with a credit limit ends the run when its price is unknown", async () => {
    const { status, failure, limit } = await run({ cost: null });
    expect({ status, failure }).toMatchObject({ status: "error", failure: { type: "factory_accounting_incomplete" } });
    expect(limit).toEqual(["price"]);
  });
});
