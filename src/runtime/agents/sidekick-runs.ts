/** Reads the runs of a session's sidekicks from its log, without a model and without changes. */
import { defined } from "../../lib/defined.ts";
import type { EventData, SessionEvent } from "../../protocol/event.ts";
import { InboxEntries, type LoggedInboxEntry } from "../../session/agents/inbox-entries.ts";
import { isSidekickId } from "../../session/agents/sidekick-id.ts";
import type { Store } from "../../store/store.ts";

export interface SidekickRunSummary {
  readonly id: string;
  readonly name: string;
  readonly trigger: EventData<"troupe.sidekick_triggered">["trigger"];
  readonly startedAt: number;
  readonly state: "running" | EventData<"troupe.sidekick_ended">["reason"];
  readonly error?: string;
  readonly sent: number;
  /** Model calls. */
  readonly turns: number;
  readonly tokens: number;
  /** Null if a price is unknown. */
  readonly costUsd: number | null;
}

export interface StoredSidekicks {
  readonly runs: readonly SidekickRunSummary[];
  readonly entries: readonly LoggedInboxEntry[];
}

export async function readSidekicks(store: Store, sessionId: string): Promise<StoredSidekicks> {
  const log = await store.open(sessionId);
  try {
    const runs = runsIn(log.events).map((run) =>
      // A run of a process that is gone was interrupted, even if the log does not say so yet.
      run.state === "running" && !log.heldBy ? { ...run, state: "interrupted" as const } : run,
    );
    return { runs, entries: new InboxEntries(log.events).all };
  } finally {
    await log.close();
  }
}

/** Returns runs in start order. A persistent sidekick that resumes later adds a run with the same id. */
function runsIn(events: readonly SessionEvent[]): readonly SidekickRunSummary[] {
  const runs: SidekickRunSummary[] = [];
  const last = new Map<string, number>();
  const change = (id: string, how: (run: SidekickRunSummary) => Partial<SidekickRunSummary>): void => {
    const index = last.get(id);
    const run = index === undefined ? undefined : runs[index];
    if (run && index !== undefined) runs[index] = { ...run, ...how(run) };
  };
  for (const event of events) {
    const { agentId: id = "" } = event;
    if (!isSidekickId(id)) continue;
    if (event.type === "troupe.sidekick_triggered" && runs[last.get(id) ?? -1]?.state !== "running") {
      const { name, trigger } = event.data;
      const startedAt = Date.parse(event.timestamp);
      last.set(id, runs.length);
      runs.push({ id, name, trigger, startedAt, state: "running", sent: 0, turns: 0, tokens: 0, costUsd: 0 });
    }
    if (event.type === "troupe.sidekick_ended") {
      const { reason, error } = event.data;
      change(id, () => ({ state: reason, ...defined({ error }) }));
    }
    if (event.type === "troupe.inbox_entry") change(id, ({ sent }) => ({ sent: sent + 1 }));
    if (event.type === "troupe.usage") {
      const { inputTokens, outputTokens, costUsd: cost } = event.data;
      change(id, ({ turns, tokens, costUsd }) => ({
        turns: turns + 1,
        tokens: tokens + inputTokens + outputTokens,
        costUsd: costUsd === null || cost === null ? null : costUsd + cost,
      }));
    }
  }
  return runs;
}
