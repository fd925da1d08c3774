import type { Command } from "./command.ts";

export const rewind: Command = {
  name: "rewind",
  group: "Sessions",
  summary: "go back to before a message; --files restores files too",
  flags: {
    list: "list the messages, and earlier rewinds (default)",
    to: "go back to before this message",
    files: true,
    restore: "undo the last rewind; with --to, the rewind with this id",
    "dry-run": "show what would happen",
    session: true,
    json: "print one JSON object",
  },
  examples: [
    ["troupe rewind", "list the messages, and earlier rewinds"],
    ["troupe rewind --to 3 --files --dry-run", "preview the rewind of the conversation and the files"],
    ["troupe rewind --restore", "undo the last rewind"],
  ],
  notes: [
    "A rewind deletes nothing: the removed messages stay in the log and can be restored. Files that changed since then " +
      "outside the session are not restored.",
  ],
  load: async () => (await import("../commands/rewind.ts")).rewindCommand,
};

export const fork: Command = {
  name: "fork",
  group: "Sessions",
  summary: "start a new session with the conversation of another",
  flags: { at: true, name: "the name of the new session", session: true, json: "print one JSON object" },
  examples: [
    ["troupe fork --name experiment", "copy the whole conversation of the last session"],
    ["troupe fork --at 3", "copy what comes before message 3; troupe rewind lists the messages"],
  ],
  load: async () => (await import("../commands/rewind.ts")).forkCommand,
};
