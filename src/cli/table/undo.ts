import type { Command } from "./command.ts";

export const undo: Command = {
  name: "undo",
  group: "Sessions",
  summary: "restore files that the agent changed",
  arguments: [{ name: "turn|call id", optional: true, values: ["turn", "list"] }],
  flags: {
    list: "show what can be undone, with the last change at the bottom",
    session: true,
    force: "also restore files that changed since; their current content is saved, and the output names the copy",
    json: "with --list: print one JSON array",
    database: "local: the sessions of this machine, which are the only ones that can be undone",
  },
  examples: [
    ["troupe undo", "undo the file changes of the last tool call"],
    ["troupe undo turn", "undo the file changes of the whole last answer"],
    ["troupe undo --list", "show what can be undone"],
  ],
  notes: ["With a call id, that tool call and everything after it is undone."],
  load: async () => {
    const { undoCommand } = await import("../commands/undo.ts");
    return (given) => undoCommand(given);
  },
};
