import type { Command } from "./command.ts";

export const trust: Command = {
  name: "trust",
  group: "Setup",
  summary: "show what a folder would run, and trust it",
  arguments: [{ name: "folder", optional: true, values: "folder" }],
  flags: { yes: "do not ask for confirmation" },
  examples: [
    ["troupe trust", "review the hooks, servers and settings of this repository, and trust them"],
    ["troupe trust list", "the trusted folders"],
    ["troupe trust remove", "stop trusting this repository"],
  ],
  subcommands: [
    { name: "list", summary: "list the trusted folders", flags: { json: "print one JSON array" } },
    {
      name: "remove",
      summary: "stop trusting a folder",
      arguments: [{ name: "folder", optional: true, values: "folder" }],
    },
  ],
  notes: [
    "Trust covers exactly this folder and the items that were shown. An item that changes later stays off until you run " +
      "`troupe trust` again.",
  ],
  load: async () => {
    const { trustCommand } = await import("../commands/trust.ts");
    return (given) => trustCommand(given);
  },
};
