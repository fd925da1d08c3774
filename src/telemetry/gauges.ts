/** Values as they are now. They are read before each export; a value that is not read again is no longer exported. */
import type { Attributes } from "./span.ts";

export const gauges = {
  workers: { name: "troupe.cluster.workers", unit: "{worker}", description: "Workers, by pool and state." },
  leases: { name: "troupe.cluster.leases", unit: "{lease}", description: "Valid leases of workers." },
  sessions: {
    name: "troupe.cluster.sessions",
    unit: "{session}",
    description: "Sessions with open jobs: running, queued, or waiting for a response.",
  },
  oldestWait: {
    name: "troupe.cluster.oldest_wait",
    unit: "s",
    description: "Time since the oldest queued work could have begun.",
  },
  takeOvers: {
    name: "troupe.cluster.takeovers",
    unit: "{takeover}",
    description: "Take-overs of stored sessions from lost workers.",
  },
  setAside: {
    name: "troupe.cluster.set_aside",
    unit: "{work}",
    description: "Work that no worker takes up any more.",
  },
  budgetCost: { name: "troupe.cluster.budget.cost", unit: "{USD}", description: "Spent by a tenant in its period." },
  budgetTokens: {
    name: "troupe.cluster.budget.tokens",
    unit: "{token}",
    description: "Tokens used by a tenant in its period.",
  },
  budgetUse: { name: "troupe.cluster.budget.use", unit: "1", description: "The used part of a tenant's limit." },
  gateShut: {
    name: "troupe.cluster.gate.shut",
    unit: "{gate}",
    description: "1 while a provider's rate limit holds requests of all workers, else 0.",
  },
} as const;

export type GaugeName = keyof typeof gauges;

export interface Reading {
  readonly gauge: GaugeName;
  readonly value: number;
  readonly attributes: Attributes;
}
