/** The `sidekick` field of a definition: the events that start the agent, and how often it may send. */
import { isObject } from "../lib/json.ts";

const sidekickEvents = ["user.message", "session.context_changed"] as const;
export type SidekickEvent = (typeof sidekickEvents)[number];

interface SidekickTrigger {
  readonly event: SidekickEvent;
  /** The maximum number of starts in one session. */
  readonly limit?: number;
}

export interface Sidekick {
  readonly triggers: readonly SidekickTrigger[];
  /**
   * `restart`: a newer event cancels the current work and starts again. `persistent`: the event is delivered to the
   * running agent.
   */
  readonly behavior: "restart" | "persistent";
  /** The maximum number of messages per event. */
  readonly maxSendsPerTurn: number;
}

export const sidekickShape = `an event (${sidekickEvents.join(" or ")}), or a map of triggers (a list of events, or of {event, limit}), behavior (restart or persistent) and maxSendsPerTurn (1 to 10)`;

const MAX_SENDS = 10;
const MAX_LIMIT = 1_000_000;
const KEYS: ReadonlySet<string> = new Set(["triggers", "behavior", "maxSendsPerTurn"]);

/** Returns undefined if the value is invalid. */
export function readSidekick(value: unknown): Sidekick | undefined {
  if (typeof value === "string") return readSidekick({ triggers: [value.trim()] });
  if (!isObject(value)) return undefined;
  const given = Object.fromEntries(Object.entries(value).map(([key, member]) => [camel(key), member]));
  if (Object.keys(given).some((key) => !KEYS.has(key))) return undefined;
  const triggers = readTriggers(given.triggers);
  const { behavior = "restart", maxSendsPerTurn = 1 } = given;
  if (!triggers || (behavior !== "restart" && behavior !== "persistent")) return undefined;
  if (!isCount(maxSendsPerTurn, MAX_SENDS)) return undefined;
  return { triggers, behavior, maxSendsPerTurn };
}

function readTriggers(value: unknown): readonly SidekickTrigger[] | undefined {
  const list = (Array.isArray(value) ? value : [value]).map(readTrigger);
  const triggers = list.flatMap((trigger) => trigger ?? []);
  const isTwice = new Set(triggers.map(({ event }) => event)).size < triggers.length;
  return list.length === 0 || triggers.length < list.length || isTwice ? undefined : triggers;
}

function readTrigger(value: unknown): SidekickTrigger | undefined {
  const { event: written, limit, ...more } = isObject(value) ? value : { event: value };
  const event = sidekickEvents.find((known) => known === written);
  if (event === undefined || Object.keys(more).length > 0) return undefined;
  if (limit === undefined) return { event };
  return isCount(limit, MAX_LIMIT) ? { event, limit } : undefined;
}

const isCount = (value: unknown, most: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most;

const camel = (key: string): string => key.replace(/[-_]([a-z])/g, (_sign, letter: string) => letter.toUpperCase());
