import { describe, expect, it } from "vitest";
import { agentLimits } from "../../src/runtime/agents/agent-limits.ts";

const limitsOf = async (plan: string | undefined, settings: object = {}) => {
  const accountPlan = async () => {
    if (plan === "broken") throw new Error("no answer");
    return plan;
  };
  const { limits, ready } = agentLimits({ environment: {}, settings, accountPlan, warn: expect.unreachable });
  await ready();
  return limits;
};

describe("the default limits on agents", () => {
  it.each([
    ["free", 2],
    ["individual_edu", 2],
    ["individual", 4],
    ["individual_pro", 4],
    ["Individual_Max", 8],
    ["business", 16],
    ["enterprise", 32],
    ["a plan of next year", 32],
    ["broken", 32],
    [undefined, 32],
  ])("ORC-10 the default limit with the plan %s is %i agents at once", async (plan, cap) => {
    expect(await limitsOf(plan)).toMatchObject({ maxConcurrency: cap });
  });

  it("ORC-10 a cap in settings replaces the default limit on agents", async () => {
    expect(await limitsOf("free", { subagents: { maxConcurrency: 9 } })).toMatchObject({ maxConcurrency: 9 });
  });
});
