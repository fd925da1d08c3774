import type { Command } from "./command.ts";

export const undo: Command = {
  name: "undo",
  group: "Sessions",
  summary: "restore files that the agent changed",
  arguments: [{ name: "turn|call id", optional: true, values: ["turn", "list"] }],
  flags: {
    list: "show what can be undone, the last change at the bottom",
    session: true,
    force: "also restore files that changed since; their current content is kept and its place is named",
    json: "with --list: print one JSON array",
  },
  examples: [
    ["troupe undo", "undo the file changes of the last tool call"],
    ["troupe undo turn", "undo the file changes of the whole last turn"],
    ["troupe undo --list", "show what can be undone"],
  ],
  notes: ["With a call id, everything from that tool call on is undone."],
  load: async () => {
    const { undoCommand } = await import("../commands/undo.ts");
    return (given) => undoCommand(given);
  },
};
