import type { Command } from "./command.ts";

export const usage: Command = {
  name: "usage",
  group: "Sessions",
  summary: "show tokens and cost by day, model, agent or repository",
  flags: {
    by: true,
    since: "only since this day (2026-01-31) or within a time span (7d, 4w); whole days",
    json: "print one JSON object",
    database: true,
  },
  examples: [
    ["troupe usage --since 30d", "each day of the last month"],
    ["troupe usage --by model", "which model cost how much"],
    ["troupe usage --by repository --json", "as data"],
  ],
  notes: [
    "The figures come from the logs. Each model call counts once, including those of subagents, rewound messages and " +
      "compaction. A fork does not count again what it copied. Deleted sessions are not counted.",
  ],
  load: async () => (await import("../usage/usage.ts")).usageCommand,
};
