import type { Command } from "./command.ts";

export const diff: Command = {
  name: "diff",
  group: "Sessions",
  summary: "show what a session changed in files",
  arguments: [{ name: "id|name", optional: true, values: "session" }],
  flags: { session: true, json: "print one JSON array, one entry per file", database: true },
  examples: [
    ["troupe diff", "changes of the last session of this folder"],
    ["troupe diff 3f2a91c", "changes of another session"],
    ["troupe diff 3f2a91c --database postgres://troupe@db.example.com/troupe", "of a session that runs on workers"],
  ],
  load: async () => (await import("../commands/diff.ts")).diffCommand,
};
