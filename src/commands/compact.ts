import { defineCommand } from "./command.ts";

export const compact = defineCommand({
  name: "compact",
  summary: "Replace the conversation so far with a summary, to free context",
  argumentHint: "[what matters most]",
  needs: ["context"],
  run: async (focus, { context }) => ({ kind: "completed", text: await context.compact(focus) }),
});
