import type { Command } from "./command.ts";

export const help: Command = {
  name: "help",
  group: "Setup",
  summary: "show the help of a command, or a topic",
  arguments: [
    { name: "command|topic", optional: true, values: "topic" },
    { name: "subcommand", optional: true },
  ],
  flags: { man: true },
  examples: [
    ["troupe help tasks merge", "one subcommand"],
    ["troupe help permissions", "a topic"],
    ["troupe help --man | man -l -", "the man page"],
  ],
  load: async () => (await import("../help/help.ts")).helpCommand,
};
