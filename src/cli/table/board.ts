import type { Command } from "./command.ts";

const board_ = { branch: true, repository: true, "trust-folder": true } as const;

export const board: Command = {
  name: "board",
  group: "Knowledge",
  summary: "read and change the notes on this repository and branch",
  examples: [
    ["troupe board list", "notes by agents and by you"],
    ['troupe board add release "Tag on main only."', "a note of yours, which no agent changes"],
    ["troupe board restore", "undo the last change"],
  ],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list the notes",
      flags: { all: "list every board instead", json: "print one JSON array", ...board_ },
    },
    {
      name: "show",
      summary: "print one note in full",
      arguments: [{ name: "name" }],
      flags: { src: true, json: "print one JSON object", ...board_ },
    },
    {
      name: "add",
      summary: "add or replace a note of yours",
      arguments: [{ name: "name" }, { name: "text" }],
      flags: { description: true, ...board_ },
    },
    {
      name: "prune",
      summary: "remove notes",
      arguments: [{ name: "name", optional: true, repeated: true }],
      flags: {
        all: "remove every note; needs --yes",
        yes: "confirm --all",
        purge: "also remove them from the history",
        src: true,
        ...board_,
      },
    },
    {
      name: "changes",
      summary: "list the changes and who made them; with a number, show the full texts",
      arguments: [{ name: "change", optional: true }],
      flags: { json: "print one JSON array; with a number, one JSON object", ...board_ },
    },
    {
      name: "restore",
      summary: "undo the last change, or this one",
      arguments: [{ name: "change", optional: true }],
      flags: board_,
    },
    {
      name: "consolidate",
      summary: "let rem-agent add notes about what the last session of this folder learned",
      flags: { session: true, model: true, "trust-folder": true, json: "print one JSON object" },
    },
  ],
  load: async () => (await import("../commands/board.ts")).boardCommand,
};
