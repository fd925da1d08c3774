import { expect, test } from "vitest";
import type { ToolContext } from "../../src/tools/tool.ts";
import { exitPlanMode } from "../../src/tools/user/exit-plan-mode.ts";
import type { PlanDecision, PlanProposal } from "../../src/tools/user/user.ts";
import { contentOf, contextFor, failureOf } from "./workspace.ts";

function reviewed(decision: PlanDecision | "unavailable"): { context: ToolContext; proposals: PlanProposal[] } {
  const proposals: PlanProposal[] = [];
  const user = {
    ask: async () => "unavailable" as const,
    async reviewPlan(proposal: PlanProposal) {
      proposals.push(proposal);
      return decision;
    },
  };
  return { context: { ...contextFor("/"), user }, proposals };
}

test("an approved plan ends plan mode and names the next step", async () => {
  const { context, proposals } = reviewed({ approved: true, selectedAction: "interactive" });
  const content = await contentOf(exitPlanMode, { summary: "- do it" }, context);
  expect(content).toMatch(/^Plan approved! Exited plan mode\.\n\nCarry out the plan/);
  expect(proposals).toEqual([
    {
      summary: "- do it",
      actions: ["interactive", "autopilot", "exit_only"],
      recommendedAction: "interactive",
      toolCallId: "call_1",
    },
  ]);
});

test.each([
  ["autopilot", "without waiting"],
  ["autopilot_fleet", "several agents"],
  ["exit_only", "Do not start"],
] as const)("%s has words of its own", async (selectedAction, words) => {
  expect(
    await contentOf(exitPlanMode, { summary: "s" }, reviewed({ approved: true, selectedAction }).context),
  ).toContain(words);
});

test("exit_plan_mode offers the model's actions without duplicates, including the recommended one", async () => {
  const proposed = async (input: object): Promise<PlanProposal | undefined> => {
    const { context, proposals } = reviewed({ approved: true });
    await contentOf(exitPlanMode, { summary: "s", ...input }, context);
    return proposals[0];
  };
  expect(
    await proposed({ actions: ["exit_only", "interactive", "exit_only"], recommendedAction: "interactive" }),
  ).toEqual({
    summary: "s",
    actions: ["exit_only", "interactive"],
    recommendedAction: "interactive",
    toolCallId: "call_1",
  });
  expect(await proposed({ actions: ["exit_only"], recommendedAction: "autopilot" })).toEqual({
    summary: "s",
    actions: ["exit_only"],
    recommendedAction: "exit_only",
    toolCallId: "call_1",
  });
  expect((await proposed({ showFleet: true, recommendedAction: "autopilot_fleet" }))?.recommendedAction).toBe(
    "autopilot_fleet",
  );
});

test("a rejected plan keeps plan mode on and passes the words of the user on", async () => {
  const { context } = reviewed({ approved: false, feedback: "smaller steps" });
  expect(await contentOf(exitPlanMode, { summary: "s" }, context)).toBe(
    "The plan was not approved; plan mode stays on. The user says: smaller steps\n\nImprove the plan accordingly, then propose it again.",
  );
});

test("plan mode stays on when no user is there", async () => {
  const failure = { code: "failure", message: expect.stringContaining("plan mode stays on") };
  expect(await failureOf(exitPlanMode, { summary: "s" }, reviewed("unavailable").context)).toEqual(failure);
  expect(await failureOf(exitPlanMode, { summary: "s" }, contextFor("/"))).toEqual(failure);
});
