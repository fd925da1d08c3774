import { defineCommand, type PromptResult } from "../command.ts";
import { filledIn } from "../lines.ts";
import template from "./fleet.md";

export const fleet = defineCommand({
  name: "fleet",
  summary: "Divide the work into todos and run several agents in parallel",
  harmless: "always",
  argumentHint: "[task]",
  run: (argument) => fleetPrompt(argument),
});

/** Returns the fleet prompt. Also used for plans that a fleet carries out, and by programs that start one. */
export function fleetPrompt(argument: string): PromptResult {
  const request = argument || "Do what was agreed in this conversation: the current plan and todos.";
  return {
    kind: "prompt",
    prompt: filledIn(template, { request }),
    displayPrompt: argument ? `Fleet deployed: ${argument}` : "Fleet deployed",
    gate: { kind: "fleet" },
  };
}
