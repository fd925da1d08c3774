import { defineCommand } from "./command.ts";

export const context = defineCommand({
  name: "context",
  summary: "Show what fills the model's context window",
  harmless: "always",
  needs: ["context"],
  run: async (_, { context: port }) => ({ kind: "completed", text: await port.report() }),
});
