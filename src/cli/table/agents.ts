import type { Command } from "./command.ts";

const sources = { "trust-folder": true, "plugin-dir": true } as const;

export const agents: Command = {
  name: "agents",
  group: "Agents",
  summary: "list and check the agents that can be given work here",
  examples: [
    ["troupe agents list", "every agent, its source, model and tools"],
    ['troupe agents new "release notes"', "write the file of a new agent"],
    ["troupe agents check", "report mistakes in the files of agents"],
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
      summary: "write the file of a new agent, for you to fill in",
      arguments: [{ name: "name" }],
      flags: {
        project: "for this repository, in .troupe/agents (default)",
        user: "for you, in all folders",
        ...sources,
      },
    },
    {
      name: "check",
      summary: "report mistakes in all files of agents, or in these",
      arguments: [{ name: "path", optional: true, repeated: true, values: "file" }],
      flags: sources,
    },
  ],
  load: async () => (await import("../commands/agents.ts")).runAgents,
};
