import type { Command } from "./command.ts";

export const init: Command = {
  name: "init",
  group: "Setup",
  summary: "read the repository and write an AGENTS.md for it",
  flags: {
    print: true,
    "dry-run": "the same as --print, and name the file that would be written",
    force: "replace an existing AGENTS.md without asking",
    model: "let this model read the repository and improve the draft",
    effort: true,
    "max-cost": true,
    "max-turns": true,
  },
  examples: [
    ["troupe init", "write AGENTS.md; asks before it uses a model or replaces a file"],
    ["troupe init --print", "show the draft only"],
    ["troupe init --model anthropic/claude-sonnet-5-5", "let a model improve it"],
  ],
  load: async () => (await import("../init/init.ts")).initCommand,
};
