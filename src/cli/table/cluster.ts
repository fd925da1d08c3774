import type { Command } from "./command.ts";

export const cluster: Command = {
  name: "cluster",
  group: "Many machines",
  summary: "show workers, queues and submitted work of a database",
  subcommands: [
    { name: "status", summary: "show workers and the latest work", flags: { database: true, json: true, limit: true } },
    { name: "workers", summary: "show the workers", flags: { database: true, json: true } },
    { name: "queues", summary: "show how much work waits, by pool and tenant", flags: { database: true, json: true } },
    { name: "requests", summary: "show requests that wait for a person", flags: { database: true, json: true } },
    {
      name: "answer",
      summary: "answer a request: allow, deny, or a text",
      arguments: [{ name: "request id" }, { name: "answer", repeated: true }],
      flags: { database: true },
    },
    {
      name: "cancel",
      summary: "cancel work that has not ended",
      arguments: [{ name: "work id" }],
      flags: { database: true },
    },
  ],
  usual: "status",
  flags: { database: true, json: true, limit: true },
  examples: [
    ["troupe cluster status", "workers, and the latest work with its state"],
    ["troupe cluster requests", "what sessions ask people"],
    ["troupe cluster answer 3f2a91c allow", "allow the call that waits"],
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../cluster/cluster.ts")).clusterCommand,
};
