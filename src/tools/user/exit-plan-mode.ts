import * as z from "zod";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./exit-plan-mode.md";
import { PERSON_TIMEOUT_MS, type PlanAction, type PlanDecision } from "./user.ts";

const MAX_SUMMARY_CHARACTERS = 20_000;
const MAX_FEEDBACK_CHARACTERS = 20_000;
const action = () => z.enum(["exit_only", "interactive", "autopilot", "autopilot_fleet"]);

/** Offered in plan mode only. */
export const exitPlanMode = defineTool({
  name: "exit_plan_mode",
  modes: ["plan"],
  description,
  input: fixed("exit_plan_mode", () =>
    z.object({
      summary: z.string().trim().min(1).max(MAX_SUMMARY_CHARACTERS).describe("The plan in short"),
      actions: z.array(action()).min(1).max(4).optional().describe("Next steps that the user may choose from"),
      showFleet: z.boolean().optional().describe("Also offer to use several agents in parallel"),
      recommendedAction: action().optional().describe("The next step you recommend"),
    }),
  ),
  exclusive: true,
  needs: "exit_plan_mode",
  timeoutMs: PERSON_TIMEOUT_MS,
  async run({ summary, actions, showFleet, recommendedAction }, { user, signal, toolCallId }: ToolContext) {
    const offered = offeredActions(actions, showFleet ?? false);
    const recommended = offered.find((action) => action === recommendedAction) ?? offered[0];
    const proposal = { summary, actions: offered, recommendedAction: recommended, toolCallId };
    const decision = (await user?.reviewPlan(proposal, signal)) ?? "unavailable";
    if (decision === "unavailable") throw new ToolError(UNAVAILABLE);
    return { content: decision.approved ? approvedText(decision) : rejectedText(decision) };
  },
});

const UNAVAILABLE =
  "No user can approve the plan now, so plan mode stays on and nothing may be changed. Give the whole plan as your answer and end.";

function offeredActions(actions: readonly PlanAction[] | undefined, showFleet: boolean): [PlanAction, ...PlanAction[]] {
  const [first = "interactive", ...rest] = actions ?? ["interactive", "autopilot", "exit_only"];
  const all = [first, ...rest, ...(showFleet ? (["autopilot_fleet"] as const) : [])];
  return [first, ...new Set(all.slice(1).filter((action) => action !== first))];
}

function approvedText({ selectedAction = "interactive" }: PlanDecision): string {
  const next: Record<PlanAction, string> = {
    interactive: "Carry out the plan now, step by step. Say so when you have to depart from it.",
    autopilot:
      "Carry out the whole plan now without waiting for the user, and check the result before you declare it done.",
    autopilot_fleet:
      "Carry out the whole plan now with several agents at once where its steps are independent, and check the result before you declare it done.",
    exit_only: "Do not start on it: end here and wait for the user.",
  };
  return `Plan approved! Exited plan mode.\n\n${next[selectedAction]}`;
}

function rejectedText({ feedback }: PlanDecision): string {
  const words = feedback?.trim().slice(0, MAX_FEEDBACK_CHARACTERS);
  const said = words ? ` The user says: ${words}` : "";
  return `The plan was not approved; plan mode stays on.${said}\n\nImprove the plan accordingly, then propose it again.`;
}
