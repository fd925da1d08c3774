/** Flags of the commands for many machines, and of those that can read a database. */

import type { Option } from "../options.ts";

export const clusterOptions: readonly Option[] = [
  {
    name: "database",
    value: "url",
    group: "Commands",
    help: "the Postgres database: postgres://user@host/name (default: TROUPE_DATABASE_URL). local: none",
  },
  { name: "pool", value: "name", group: "Commands", help: "the pool of workers (default: default)" },
  { name: "concurrency", value: "n", group: "Commands", help: "run at most n sessions at a time (default 8)" },
  {
    name: "lease",
    value: "seconds",
    group: "Commands",
    help: "a silent worker is replaced after this time (default 15)",
  },
  { name: "requests-per-minute", value: "n", group: "Commands", help: "at most n requests in any minute" },
  {
    name: "per",
    value: "period",
    values: ["total", "day", "month"],
    group: "Commands",
    help: "total (default), day or month; days and months are those of UTC",
  },
  {
    name: "untrusted",
    group: "Commands",
    help: "for strangers' work: needs the sandbox and --tenant, and refuses flags that open it",
  },
  { name: "undo", group: "Commands", help: "take the command back" },
  { name: "role", value: "role", group: "Commands", help: "the database role of the tenant" },
  { name: "health-port", value: "port", group: "Commands", help: "answer GET /healthz on this port of the loopback" },
  { name: "repo", value: "git url", group: "Commands", help: "the repository to work on; every worker must reach it" },
  { name: "ref", value: "ref", group: "Commands", help: "the branch, tag or commit to start from (default: HEAD)" },
  { name: "tenant", value: "name", group: "Commands", help: "who the work is for (default: default)" },
  { name: "on-loss", value: "continue|stop", group: "Commands", help: "when a worker is lost (default: continue)" },
  {
    name: "ask",
    group: "Commands",
    help: "people may decide about calls that no rule decides; without it they are denied",
  },
  {
    name: "park-after",
    value: "seconds",
    group: "Commands",
    help: "free the slot of a session that waits this long for a person (default 5)",
  },
  { name: "keep-work", value: "days", group: "Commands", help: "remove rows of work that ended before (default 30)" },
  {
    name: "keep-sessions",
    value: "days",
    group: "Commands",
    help: "remove sessions that were not used for so long (default: never)",
  },
];
