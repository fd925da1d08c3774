import type { Command } from "./command.ts";

export const cluster: Command = {
  name: "cluster",
  group: "Many machines",
  summary: "show workers, queues and submitted work of a database",
  subcommands: [
    { name: "status", summary: "show workers and the latest work", flags: { database: true, json: true, limit: true } },
    { name: "workers", summary: "show the workers", flags: { database: true, json: true } },
    { name: "queues", summary: "show how much work waits, by pool and tenant", flags: { database: true, json: true } },
    { name: "requests", summary: "show requests that wait for an answer", flags: { database: true, json: true } },
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
    {
      name: "retry",
      summary: "take up work again that failed or was set aside",
      arguments: [{ name: "work id" }],
      flags: { database: true },
    },
    {
      name: "drain",
      summary: "let a worker, or those of a pool, finish what they have and take nothing new",
      arguments: [{ name: "worker", optional: true }],
      flags: { pool: "all workers of this pool that run now", undo: "let them take work again", database: true },
    },
    {
      name: "limit",
      summary: "limit the requests of all workers to a model: list, set, remove",
      arguments: [
        { name: "list|set|remove", optional: true, values: ["list", "set", "remove"] },
        { name: "provider[/model]", optional: true },
      ],
      flags: {
        "requests-per-minute": true,
        concurrency: "at most n requests at a time",
        database: true,
        json: true,
      },
    },
    {
      name: "budget",
      summary: "limit what a tenant may spend: list, set, remove",
      arguments: [
        { name: "list|set|remove", optional: true, values: ["list", "set", "remove"] },
        { name: "tenant", optional: true },
      ],
      flags: {
        "max-cost": "at most this many dollars",
        "max-tokens": "at most n tokens, in and out",
        per: true,
        database: true,
        json: true,
      },
    },
    {
      name: "tenant",
      summary: "let a database role submit and read the work of one tenant: list, set, remove",
      arguments: [
        { name: "list|set|remove", optional: true, values: ["list", "set", "remove"] },
        { name: "tenant", optional: true },
      ],
      flags: { role: true, pool: "only to these pools, separated by commas", database: true, json: true },
    },
  ],
  usual: "status",
  flags: { database: true, json: true, limit: true },
  examples: [
    ["troupe cluster status", "workers, and the latest work with its state"],
    ["troupe cluster requests", "questions and permissions that wait for an answer"],
    ["troupe cluster answer 3f2a91c allow", "allow the waiting call"],
    ["troupe cluster limit set openai/gpt-5 --requests-per-minute 600 --concurrency 20", "for all workers together"],
    ["troupe cluster budget set acme --max-cost 200 --per month", "what a tenant may spend"],
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../cluster/cluster.ts")).clusterCommand,
};
