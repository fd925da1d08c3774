/** An `Engine` in one process, for tests. It keeps the same contract without a database. */

import type { Activation, Engine, EngineWorker, Work, WorkQuery, WorkState, WorkView } from "./engine.ts";
import { ClaimLost } from "./engine.ts";

interface Entry extends Work {
  state: WorkState;
  attempts: number;
  readonly createdAt: number;
  updatedAt: number;
  error?: string;
}

const MAX_ATTEMPTS = 20;
const RETRY_MS = 5;

export function memoryEngine({ now = Date.now, concurrency = 8 } = {}): Engine {
  const entries = new Map<string, Entry>();
  const running = new Set<Promise<void>>();
  let run: Activation | undefined;

  const change = (entry: Entry, state: WorkState): void => {
    entry.state = state;
    entry.updatedAt = now();
  };
  const isBusy = (sessionId: string): boolean =>
    [...entries.values()].some((entry) => entry.sessionId === sessionId && entry.state === "running");
  const runningOf = (tenant: string | undefined): number =>
    [...entries.values()].filter((entry) => entry.state === "running" && entry.tenant === tenant).length;
  const next = (): void => {
    while (run && running.size < concurrency) {
      const ready = [...entries.values()].filter(({ state, sessionId }) => state === "queued" && !isBusy(sessionId));
      const [first] = ready.sort((one, other) => runningOf(one.tenant) - runningOf(other.tenant));
      if (!first) return;
      start(first, run);
    }
  };
  const start = (entry: Entry, activation: Activation): void => {
    change(entry, "running");
    const activity = activate(entry, activation, change).finally(() => {
      running.delete(activity);
      next();
    });
    running.add(activity);
  };
  return {
    async submit(work) {
      if (entries.has(work.id)) return;
      entries.set(work.id, { ...work, state: "queued", attempts: 0, createdAt: now(), updatedAt: now() });
      next();
    },
    async serve(activation): Promise<EngineWorker> {
      run = activation;
      next();
      return {
        async drain(timeoutMs) {
          run = undefined;
          const timeout = new Promise<void>((resolve) => setTimeout(resolve, timeoutMs).unref());
          await Promise.race([Promise.allSettled(running), timeout]);
        },
      };
    },
    async cancel(workId) {
      const entry = entries.get(workId);
      if (entry?.state === "queued" || entry?.state === "running") change(entry, "cancelled");
    },
    async retry(work) {
      entries.delete(work.id);
      entries.set(work.id, { ...work, state: "queued", attempts: 0, createdAt: now(), updatedAt: now() });
      next();
    },
    list: async (query: WorkQuery = {}) =>
      [...entries.values()].filter((entry) => matches(entry, query)).slice(0, query.limit ?? 1_000),
    close: async () => undefined,
  };
}

/** Runs an entry until it is done, cancelled or set aside. */
async function activate(
  entry: Entry,
  activation: Activation,
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
      else await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

const matches = (entry: WorkView, { sessionId, states }: WorkQuery): boolean =>
  (sessionId === undefined || entry.sessionId === sessionId) && (!states || states.includes(entry.state));
