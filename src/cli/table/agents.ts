import type { Command } from "./command.ts";

const sources = { "trust-folder": true, "plugin-dir": true } as const;

export const agents: Command = {
  name: "agents",
  group: "Agents",
  summary: "list, show, write and check the agents of this folder",
  examples: [
    ["troupe agents list", "each agent with its source, model and tools"],
    ['troupe agents new "release notes"', "write the file of a new agent"],
    ["troupe agents check", "report mistakes in agent files"],
  ],
  usual: "list",
  subcommands: [
    { name: "list", summary: "list the agents", flags: { json: "print one JSON array", ...sources } },
    {
      name: "show",
      summary: "print one agent with its prompt",
      arguments: [{ name: "name", values: "agent" }],
      flags: { json: "print one JSON object", ...sources },
    },
    {
      name: "new",
      summary: "write the file of a new agent, to be filled in",
      arguments: [{ name: "name" }],
      flags: {
        project: "for this repository, in .troupe/agents (default)",
        user: "in your state folder, for all folders",
        ...sources,
      },
    },
    {
      name: "check",
      summary: "report mistakes in all agent files, or in these",
      arguments: [{ name: "path", optional: true, repeated: true, values: "file" }],
      flags: sources,
    },
  ],
  load: async () => (await import("../commands/agents.ts")).runAgents,
};
