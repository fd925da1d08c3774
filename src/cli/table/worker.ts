import type { Command } from "./command.ts";

export const worker: Command = {
  name: "worker",
  group: "Many machines",
  summary: "run submitted sessions from a database",
  takesSessionFlags: true,
  flags: {
    database: true,
    pool: true,
    concurrency: true,
    lease: true,
    "health-port": true,
    ask: true,
    "park-after": true,
    "keep-work": true,
    "keep-sessions": true,
    tenant: "take only the jobs of this tenant",
    untrusted: true,
  },
  examples: [
    ["troupe worker --database postgres://troupe@db/troupe", "take jobs until the worker is stopped"],
    ["troupe worker --untrusted --tenant acme --pool acme", "for people you do not trust"],
    ["troupe worker --pool gpu --concurrency 2", "take only jobs of this pool, two sessions at a time"],
  ],
  notes: [
    "Creates and updates the tables of the database. Start as many workers as you like, on any machine. Keys and rules come from each worker's own environment, settings and flags (--allow-tool, --add-dir, …); `troupe submit` can only remove tools.",
    "On SIGTERM the worker takes no new jobs and waits for running sessions. A second signal ends it at once; another worker then continues its sessions.",
  ],
  docs: "how-to/many-machines",
  load: async () => (await import("../cluster/worker.ts")).workerCommand,
};
