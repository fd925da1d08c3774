import { defineCommand } from "../command.ts";
import { filledIn } from "../lines.ts";
import template from "./review.md";

export const review = defineCommand({
  name: "review",
  summary: "Have an agent review a change for real defects",
  harmless: "always",
  argumentHint: "[what to review or watch for]",
  run: (argument) => ({
    kind: "prompt",
    prompt: filledIn(template, {
      request: argument || "the changes that are not committed yet; if there are none, the last commit",
    }),
    displayPrompt: argument ? `Review: ${argument}` : "Review the changes",
  }),
});
