import { defineCommand } from "./command.ts";

export const compact = defineCommand({
  name: "compact",
  summary: "Replace the conversation so far by a summary, to make room",
  argumentHint: "[what matters most]",
  needs: ["context"],
  run: async (focus, { context }) => ({ kind: "completed", text: await context.compact(focus) }),
});
