/** An `Engine` in one process, for tests. It keeps the same contract without a database. */

import { setTimeout } from "node:timers/promises";
import type {
  Engine,
  EngineWorker,
  RunActivation,
  Work,
  WorkQuery,
  WorkState,
  WorkView,
} from "../../src/engine/engine.ts";
import { ClaimLost } from "../../src/engine/engine.ts";

interface Entry extends Work {
  state: WorkState;
  attempts: number;
  readonly createdAt: number;
  updatedAt: number;
  error?: string;
}

const MAX_ATTEMPTS = 20;
const RETRY_MS = 5;
/** A tenant that ran in this time keeps a slot free, as in `troupe.dispatch`. */
const LATELY_MS = 600_000;

export function memoryEngine({ now = Date.now, concurrency = 8 } = {}): Engine {
  const entries = new Map<string, Entry>();
  const running = new Set<Promise<void>>();
  let run: RunActivation | undefined;

  const change = (entry: Entry, state: WorkState): void => {
    entry.state = state;
    entry.updatedAt = now();
  };
  const next = (): void => {
    while (run && running.size < concurrency) {
      const all = [...entries.values()];
      const [first] = readyOf(all);
      const isKept = concurrency - running.size <= Math.min(keptSlots(all, now()), Math.floor(concurrency / 2));
      if (!first || (isKept && isRunning(all, first.tenant))) return;
      start(first, run);
    }
  };
  const start = (entry: Entry, activation: RunActivation): void => {
    change(entry, "running");
    const activity = activate(entry, activation, change).finally(() => running.delete(activity));
    running.add(activity);
    void activity.finally(next);
  };
  const setRun = (activation: RunActivation | undefined): void => {
    run = activation;
    next();
  };
  const add = (work: Work): void => {
    entries.set(work.id, { ...work, state: "queued", attempts: 0, createdAt: now(), updatedAt: now() });
    next();
  };
  return {
    async submit(work) {
      if (!entries.has(work.id)) add(work);
    },
    async serve(activation): Promise<EngineWorker> {
      setRun(activation);
      return {
        pause: async () => setRun(undefined),
        resume: async () => setRun(activation),
        async drain(timeoutMs) {
          setRun(undefined);
          await Promise.race([Promise.allSettled(running), setTimeout(timeoutMs, undefined, { ref: false })]);
        },
      };
    },
    async cancel(workId) {
      const entry = entries.get(workId);
      if (entry?.state === "queued" || entry?.state === "running") change(entry, "cancelled");
    },
    async retry(work) {
      entries.delete(work.id);
      add(work);
    },
    list: async (query: WorkQuery = {}) =>
      [...entries.values()].filter((entry) => matches(entry, query)).slice(0, query.limit ?? 1_000),
    close: async () => undefined,
  };
}

const isRunning = (entries: readonly Entry[], tenant: string | undefined): boolean =>
  entries.some((entry) => entry.state === "running" && entry.tenant === tenant);

/** Counts the tenants that ran lately and run nothing. */
function keptSlots(entries: readonly Entry[], now: number): number {
  const lately = entries.filter(({ attempts, updatedAt }) => attempts > 0 && now - updatedAt < LATELY_MS);
  const tenants = new Set(lately.map(({ tenant }) => tenant));
  return [...tenants].filter((tenant) => !isRunning(entries, tenant)).length;
}

/** Returns queued entries of sessions that do not run, first those of tenants with the fewest running sessions. */
function readyOf(entries: readonly Entry[]): readonly Entry[] {
  const running = entries.filter(({ state }) => state === "running");
  const shareOf = ({ tenant }: Entry): number => running.filter((entry) => entry.tenant === tenant).length;
  return entries
    .filter(({ state, sessionId }) => state === "queued" && !running.some((entry) => entry.sessionId === sessionId))
    .sort((one, other) => shareOf(one) - shareOf(other));
}

/** Runs an entry until it is done, cancelled or set aside. */
async function activate(
  entry: Entry,
  activation: RunActivation,
  change: (entry: Entry, state: WorkState) => void,
): Promise<void> {
  while (entry.state === "running") {
    entry.attempts++;
    try {
      await activation(entry, { workId: entry.id, condition: "true", values: [] });
      if (entry.state === "running") change(entry, "done");
    } catch (error) {
      entry.error = String(error);
      if (entry.attempts >= MAX_ATTEMPTS || error instanceof ClaimLost) change(entry, "set_aside");
      else await setTimeout(RETRY_MS);
    }
  }
}

const matches = (entry: WorkView, { sessionId, states }: WorkQuery): boolean =>
  (sessionId === undefined || entry.sessionId === sessionId) && (!states || states.includes(entry.state));
