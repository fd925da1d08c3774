import type { Command } from "./command.ts";

export const inbox: Command = {
  name: "inbox",
  group: "Agents",
  summary: "read what sidekicks sent to the main agent",
  examples: [["troupe inbox list", "the entries of the last session of this folder"]],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list the entries and whether the main agent read them",
      flags: { session: true, json: "print one JSON array" },
    },
    {
      name: "show",
      summary: "print one entry in full",
      arguments: [{ name: "id" }],
      flags: { session: true, json: "print one JSON object" },
    },
  ],
  load: async () => (await import("../commands/inbox.ts")).inboxCommand,
};
