import type { Command } from "./command.ts";

export const cluster: Command = {
  name: "cluster",
  group: "Many machines",
  summary: "show the workers, queues and jobs of a database",
  subcommands: [
    {
      name: "status",
      summary: "show the workers and the latest jobs",
      flags: { database: true, json: true, limit: true },
    },
    { name: "workers", summary: "show the workers", flags: { database: true, json: true } },
    { name: "queues", summary: "show how many jobs wait, by pool and tenant", flags: { database: true, json: true } },
    { name: "requests", summary: "show requests that wait for a response", flags: { database: true, json: true } },
    {
      name: "answer",
      summary: "answer a request: allow, deny, or a text",
      arguments: [{ name: "request id" }, { name: "answer", repeated: true }],
      flags: { database: true },
    },
    {
      name: "cancel",
      summary: "cancel a job that has not ended",
      arguments: [{ name: "job id" }],
      flags: { database: true },
    },
    {
      name: "retry",
      summary: "run a failed or suspended job again",
      arguments: [{ name: "job id" }],
      flags: { database: true },
    },
    {
      name: "drain",
      summary: "let a worker, or all workers of a pool, finish their sessions and take no new jobs",
      arguments: [{ name: "worker", optional: true }],
      flags: { pool: "all workers of this pool that run now", undo: "let them take jobs again", database: true },
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
      summary: "let a database role submit and read the jobs of one tenant: list, set, remove",
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
    ["troupe cluster status", "workers, and the latest jobs with their state"],
    ["troupe cluster requests", "questions and permissions that wait for a response"],
    ["troupe cluster answer 3f2a91c allow", "allow the waiting call"],
    ["troupe cluster limit set openai/gpt-5 --requests-per-minute 600 --concurrency 20", "for all workers together"],
    ["troupe cluster budget set acme --max-cost 200 --per month", "what a tenant may spend"],
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../cluster/cluster.ts")).clusterCommand,
};
