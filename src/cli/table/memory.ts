import type { Command } from "./command.ts";

const fact = [{ name: "id" }] as const;
const details = { subject: true, citations: true, reason: true, expires: true } as const;

export const memory: Command = {
  name: "memory",
  group: "Knowledge",
  summary: "read and change the facts that are stored between sessions",
  examples: [
    ["troupe memory list", "facts about this repository and about you"],
    ['troupe memory add "Use tabs." --scope user', "store a fact about you"],
    ["troupe memory accept --all", "approve every fact that agents proposed"],
  ],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list the stored facts",
      flags: { all: "also list removed facts", scope: true, json: "print one JSON array" },
    },
    {
      name: "show",
      summary: "print a fact, its source and its history",
      arguments: fact,
      flags: { scope: true, json: "print one JSON object" },
    },
    {
      name: "add",
      summary: "store a fact",
      arguments: [{ name: "fact" }],
      flags: { ...details, supersedes: true, scope: true },
    },
    {
      name: "edit",
      summary: "change the text or the details of a fact",
      arguments: [{ name: "id" }, { name: "fact", optional: true }],
      flags: { ...details, scope: true },
    },
    {
      name: "accept",
      summary: "approve a proposed fact, so that later sessions see it",
      arguments: [{ name: "id", optional: true, repeated: true }],
      flags: { all: "approve every proposed fact", yes: true, scope: true },
    },
    {
      name: "remove",
      summary: "remove facts",
      arguments: [{ name: "id", repeated: true }],
      flags: { purge: "also remove them from the history", yes: true, scope: true },
    },
    { name: "export", summary: "print all facts as JSON lines", flags: { scope: true } },
    {
      name: "import",
      summary: "read facts from the output of export, as proposals",
      arguments: [{ name: "file", values: "file" }],
      flags: { scope: true },
    },
    {
      name: "undo",
      summary: "undo the last change, or this one",
      arguments: [{ name: "change", optional: true }],
      flags: { scope: true },
    },
  ],
  load: async () => {
    const { memoryCommand } = await import("../commands/memory.ts");
    return (given) => memoryCommand(given);
  },
};
