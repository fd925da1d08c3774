import type { Command } from "./command.ts";

const database = { database: true } as const;

export const worker: Command = {
  name: "worker",
  group: "Many machines",
  summary: "run submitted sessions from a database",
  flags: { ...database, pool: true, concurrency: true, lease: true, "health-port": true },
  examples: [
    ["troupe worker --database postgres://troupe@db/troupe", "take work until it is stopped"],
    ["troupe worker --pool gpu --concurrency 2", "only work of this pool, two sessions at a time"],
  ],
  notes: [
    "Creates and updates the tables of the database. Start as many workers as you like, on any machine. Keys and rules come from each worker's own environment and settings.",
    "On SIGTERM it takes no new work and waits for running sessions. A second signal ends it at once; another worker then continues its sessions.",
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../commands/cluster.ts")).workerCommand,
};

export const submit: Command = {
  name: "submit",
  group: "Many machines",
  summary: "hand a prompt to the workers of a database",
  takesSessionFlags: true,
  flags: {
    ...database,
    prompt: "the prompt",
    pool: true,
    repo: true,
    ref: true,
    tenant: true,
    "on-loss": true,
    wait: true,
    json: "print one JSON object",
  },
  examples: [
    ['troupe submit -p "Fix the flaky test" --repo https://git.example.com/app.git --wait', "and print the answer"],
    ['troupe submit -p "And now the docs" --session-id 3f2a91c0-…', "another message to a submitted session"],
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../commands/cluster.ts")).submitCommand,
};

export const cluster: Command = {
  name: "cluster",
  group: "Many machines",
  summary: "show workers, queues and submitted work of a database",
  subcommands: [
    { name: "status", summary: "show workers and the latest work", flags: { ...database, json: true, limit: true } },
    { name: "workers", summary: "show the workers", flags: { ...database, json: true } },
    { name: "queues", summary: "show how much work waits, by pool and tenant", flags: { ...database, json: true } },
    {
      name: "cancel",
      summary: "cancel work that has not ended",
      arguments: [{ name: "work id" }],
      flags: { ...database },
    },
  ],
  usual: "status",
  flags: { ...database, json: true, limit: true },
  examples: [["troupe cluster status", "workers, and the latest work with its state"]],
  docs: "how-to/many-machines",
  load: async () => (await import("../commands/cluster.ts")).clusterCommand,
};
