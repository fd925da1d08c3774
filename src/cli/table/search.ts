import type { Command } from "./command.ts";

export const search: Command = {
  name: "search",
  group: "Sessions",
  summary: "find text in past sessions",
  arguments: [{ name: "words", repeated: true }],
  flags: {
    ...{ repo: true, cwd: true, since: true, limit: true, database: true },
    json: "print one JSON array, one entry per session",
  },
  examples: [
    ["troupe search retry limiter", "sessions that mention both words"],
    ["troupe search --repo . --since 7d migration", "in this repository, in the last week"],
  ],
  notes: ["Searches prompts, answers, summaries and the paths of changed files."],
  load: async () => {
    const { searchCommand } = await import("../commands/search.ts");
    return (given) => searchCommand(given, given.words.slice(1));
  },
};
