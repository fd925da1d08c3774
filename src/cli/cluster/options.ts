/** Flags of the commands for many machines, and of those that can read a database. */

import type { Option } from "../options.ts";

export const clusterOptions: readonly Option[] = [
  {
    name: "database",
    value: "url",
    group: "Commands",
    help: "the Postgres database: postgres://user@host/name (default: TROUPE_DATABASE_URL); local: no database",
  },
  { name: "pool", value: "name", group: "Commands", help: "the pool of workers (default: default)" },
  { name: "concurrency", value: "n", group: "Commands", help: "run at most n sessions at a time (default 8)" },
  {
    name: "lease",
    value: "seconds",
    group: "Commands",
    help: "replace a worker that does not answer for this time (default 15)",
  },
  { name: "requests-per-minute", value: "n", group: "Commands", help: "at most n requests in any minute" },
  {
    name: "per",
    value: "period",
    values: ["total", "day", "month"],
    group: "Commands",
    help: "total (default), day or month; days and months are in UTC",
  },
  {
    name: "untrusted",
    group: "Commands",
    help: "for prompts of people you do not trust: needs the sandbox and --tenant, and refuses flags that weaken the sandbox",
  },
  { name: "undo", group: "Commands", help: "revert the command" },
  { name: "role", value: "role", group: "Commands", help: "the database role of the tenant" },
  { name: "health-port", value: "port", group: "Commands", help: "answer GET /healthz on this port of the loopback" },
  { name: "repo", value: "git url", group: "Commands", help: "the repository to work on; every worker must reach it" },
  { name: "ref", value: "ref", group: "Commands", help: "the branch, tag or commit to start from (default: HEAD)" },
  { name: "tenant", value: "name", group: "Commands", help: "the owner of the job (default: default)" },
  {
    name: "on-loss",
    value: "continue|stop",
    group: "Commands",
    help: "what to do when a worker is lost (default: continue)",
  },
  {
    name: "ask",
    group: "Commands",
    help: "let users decide about calls that no rule decides; without this flag they are denied",
  },
  {
    name: "park-after",
    value: "seconds",
    group: "Commands",
    help: "free the slot of a session that waits this long for a response (default 5)",
  },
  {
    name: "keep-work",
    value: "days",
    group: "Commands",
    help: "remove jobs that ended this many days ago (default 30)",
  },
  {
    name: "keep-sessions",
    value: "days",
    group: "Commands",
    help: "remove sessions that were not used for this many days (default: never)",
  },
];
