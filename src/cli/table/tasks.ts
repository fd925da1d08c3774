import type { Command } from "./command.ts";

const task = [{ name: "id" }] as const;

export const tasks: Command = {
  name: "tasks",
  group: "Agents",
  summary: "list, resume, stop and merge the agents of a session",
  examples: [
    ["troupe tasks list", "the agents of the last session of this folder"],
    ['troupe tasks resume scout "look at the tests too"', "resume an agent and print its answer"],
    ["troupe tasks merge scout --as squash", "merge its worktree as one commit"],
  ],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list the agents, who started them, and their state",
      flags: { all: "also list sidekicks", session: true, json: "print one JSON array", database: true },
    },
    {
      name: "show",
      summary: "print all answers of an agent",
      arguments: task,
      flags: { session: true, json: "print one JSON object", database: true },
    },
    {
      name: "resume",
      summary: "resume an agent that was interrupted or is idle, and print its answer",
      arguments: [{ name: "id" }, { name: "message", optional: true }],
      flags: { session: true },
      takesSessionFlags: true,
    },
    {
      name: "stop",
      summary: "stop agents, and the agents and commands they started",
      arguments: [{ name: "id", optional: true, repeated: true }],
      flags: { all: "stop every agent", session: true },
    },
    {
      name: "diff",
      summary: "show what an agent changed in its worktree",
      arguments: task,
      flags: { session: true },
    },
    {
      name: "merge",
      summary: "merge an agent's worktree into this folder; nothing changes if it conflicts",
      arguments: task,
      flags: {
        as: true,
        force: "also merge protected names, such as .vscode and .mcp.json",
        session: true,
      },
    },
    {
      name: "discard",
      summary: "delete an agent's worktree and its branch",
      arguments: task,
      flags: { force: "also delete work that was not merged", session: true },
    },
  ],
  load: async () => (await import("../commands/tasks.ts")).tasksCommand,
};
