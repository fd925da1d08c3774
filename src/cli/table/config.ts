import type { Command } from "./command.ts";

const scope = {
  user: "your own file, in the state folder (default)",
  project: "the file of this repository, .troupe/settings.json",
  local: "your own file for this repository, .troupe/settings.local.json",
} as const;
const oneFile = { user: "only your own file", project: "only the file of this repository", local: true } as const;
const key = { name: "key", values: "setting" } as const;

export const config: Command = {
  name: "config",
  group: "Setup",
  summary: "read and change settings",
  examples: [
    ["troupe config set model anthropic/claude-sonnet-5-5", "the model of every session"],
    ["troupe config set permissions.allow 'write(src)' 'shell(npm test)'", "a list: several values"],
    ["troupe config get permissions.allow", "the value that applies in this folder"],
  ],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list the values of all settings files",
      flags: { ...oneFile, json: "print one JSON array" },
    },
    {
      name: "get",
      summary: "print the value that applies here",
      arguments: [key],
      flags: { ...oneFile, json: "print JSON, also for a string" },
    },
    {
      name: "set",
      summary: "set a value: JSON, a string, or several strings for a list",
      arguments: [key, { name: "value", repeated: true }],
      flags: scope,
    },
    { name: "unset", summary: "remove a value", arguments: [key], flags: scope },
    { name: "path", summary: "print the path of a settings file", flags: scope },
  ],
  notes: ["Secrets are shown as ********."],
  load: async () => {
    const { configCommand } = await import("../config/config.ts");
    return (given) => configCommand(given);
  },
};
