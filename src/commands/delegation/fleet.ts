import { defineCommand, type PromptResult } from "../command.ts";
import { filledIn } from "../lines.ts";
import template from "./fleet.md";

export const fleet = defineCommand({
  name: "fleet",
  summary: "Divide the work into todos and run several agents in parallel",
  harmless: "always",
  argumentHint: "[task]",
  run: (wish) => fleetPrompt(wish),
});

/** Returns the fleet prompt. Also used for plans that a fleet carries out, and by programs that start one. */
export function fleetPrompt(wish: string): PromptResult {
  const request = wish || "Do what was agreed in this conversation: the current plan and todos.";
  return {
    kind: "prompt",
    prompt: filledIn(template, { request }),
    displayPrompt: wish ? `Fleet deployed: ${wish}` : "Fleet deployed",
    gate: { kind: "fleet" },
  };
}
