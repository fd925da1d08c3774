import type { Command } from "./command.ts";

const session = [{ name: "id|name", values: "session" }] as const;

const FROM = "use the sessions in this Postgres database; local: those of this machine";

export const sessions: Command = {
  name: "sessions",
  group: "Sessions",
  summary: "list, show, export and delete stored sessions",
  examples: [
    ["troupe sessions list --here --limit 10", "the last ten sessions of this repository"],
    ["troupe sessions show 3f2a91c", "read a session; the first 7 letters of its id are enough"],
    ["troupe sessions export 3f2a91c > log.jsonl", "the whole log as JSON lines"],
    ["troupe sessions export 3f2a91c --html > run.html", "one file that replays the session in a browser, offline"],
  ],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list sessions, the last used first",
      flags: { here: true, limit: "show at most n sessions", json: "print one JSON array", database: FROM },
    },
    {
      name: "show",
      summary: "print the messages and tool calls of a session",
      arguments: session,
      flags: { all: "start at the beginning, even if the log has 16 MiB or more", database: FROM },
    },
    {
      name: "search",
      summary: "the same as troupe search",
      arguments: [{ name: "words", repeated: true }],
      flags: { repo: true, cwd: true, since: true, limit: true, json: "print one JSON array", database: FROM },
    },
    { name: "reindex", summary: "rebuild the search index from the logs", flags: { database: FROM } },
    {
      name: "export",
      summary: "print the whole log as JSON lines",
      arguments: session,
      flags: { html: true, exact: true, database: FROM },
    },
    {
      name: "import",
      summary: "create a session from the output of export --exact, and print its id",
      arguments: [{ name: "file", values: "file" }],
      flags: { "session-id": "the id of the new session", database: "import into this Postgres database" },
    },
    {
      name: "delete",
      summary: "delete a session, its files and the worktrees of its agents",
      arguments: session,
      flags: { force: "also delete agents' work that was not merged", database: FROM },
    },
  ],
  load: async () => (await import("../commands/sessions.ts")).sessionsCommand,
};

export const exportCommand: Command = {
  name: "export",
  group: "Sessions",
  summary: "the same as troupe sessions export",
  arguments: session,
  flags: { html: true, exact: true, database: FROM },
  examples: [["troupe export 3f2a91c --html > run.html", "one file that replays the session in a browser, offline"]],
  load: async () => (await import("../commands/sessions.ts")).exportCommand,
};
