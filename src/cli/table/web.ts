import type { Command } from "./command.ts";

export const web: Command = {
  name: "web",
  group: "Sessions",
  summary: "open the dashboard: all sessions in the browser, on this machine",
  takesSessionFlags: true,
  flags: {
    port: "listen on this port (default: 4270, or a free one)",
    "no-open": true,
    database: "also show the workers and jobs of this Postgres database (default: TROUPE_DATABASE_URL); local: none",
  },
  examples: [
    ["troupe web", "open the dashboard in your browser"],
    ["troupe web --no-open --port 4300", "print the address only"],
    ["troupe web --database postgres://troupe@db.example.com/troupe", "also show the workers of this database"],
  ],
  notes: ["The flags of a prompt are the defaults of sessions that you start in the dashboard."],
  docs: "how-to/dashboard",
  load: async () => (await import("../commands/web.ts")).webCommand,
};
