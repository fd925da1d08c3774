import type { Command } from "./command.ts";

export const blame: Command = {
  name: "blame",
  group: "Sessions",
  summary: "show which agent, prompt and approval wrote a line",
  arguments: [{ name: "file:line", values: "file" }],
  flags: { json: "print one JSON object" },
  examples: [["troupe blame src/main.ts:12", "where does line 12 come from?"]],
  notes: ["Covers changes of the file tools, and changes of commands that `troupe undo` can revert."],
  docs: "how-to/dashboard",
  load: async () => (await import("../commands/blame.ts")).blameCommand,
};
