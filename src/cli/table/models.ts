import type { Command } from "./command.ts";

export const models: Command = {
  name: "models",
  group: "Setup",
  summary: "list usable models, and why the others are not",
  flags: { json: "print one JSON array" },
  examples: [["troupe models", "which model answers, and what the others need"]],
  notes: ["Choose a model with --model, TROUPE_MODEL, or defaultModel in providers.json. See `troupe help models`."],
  load: async () => (await import("../commands/models.ts")).modelsCommand,
};
