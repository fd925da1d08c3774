import type { Command } from "./command.ts";

export const blame: Command = {
  name: "blame",
  group: "Sessions",
  summary: "show the agent, prompt and approval that wrote a line",
  arguments: [{ name: "file:line", values: "file" }],
  flags: { json: "print one JSON object" },
  examples: [["troupe blame src/main.ts:12", "where does line 12 come from?"]],
  notes: [
    "It knows changes that have a checkpoint: those of the file tools, and those that `troupe undo` can take back.",
  ],
  docs: "how-to/dashboard",
  load: async () => (await import("../commands/blame.ts")).blameCommand,
};
