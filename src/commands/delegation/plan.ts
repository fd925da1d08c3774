import { defineCommand } from "../command.ts";

/** Prefix of prompts in plan mode, as the model reads them. */
const PLAN_MARKER = "[[PLAN]] ";

export const plan = defineCommand({
  name: "plan",
  summary: "Plan without changing anything; without a text, switch plan mode on or off",
  argumentHint: "[what to plan]",
  harmless: (argument) => argument !== "",
  run(argument, { mode }) {
    if (argument) return { kind: "prompt", prompt: `${PLAN_MARKER}${argument}`, displayPrompt: argument, mode: "plan" };
    if (mode === "plan") return { kind: "mode", mode: "interactive", text: "Plan mode is off." };
    return { kind: "mode", mode: "plan", text: "Plan mode is on: nothing is changed until a plan is approved." };
  },
});
