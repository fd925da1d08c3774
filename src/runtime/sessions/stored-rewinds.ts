import { Checkpoints } from "../../checkpoints/checkpoints.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { requireFree } from "../../protocol/errors.ts";
import { Budget } from "../../session/budget/budget.ts";
import { EventLog } from "../../session/event-log.ts";
import { finishRewinds } from "../../session/rewind/rewind-files.ts";
import { Rewinds } from "../../session/rewind/rewinds.ts";
import { visibleEvents } from "../../store/log/rewound.ts";
import type { SessionLog, Store } from "../../store/store.ts";
import { summaryOfEvents } from "../../store/summary.ts";
import { undoSeal } from "../undo-seal.ts";

/**
 * Opens the rewinds of a session that is not open, without a model. Reading works while another process writes it;
 * rewinding throws then.
 */
export async function storedRewinds(
  sessionId: string,
  { stateRoot, store, disk, stamp }: { stateRoot: string; store: Store; disk: Disk; stamp: Stamp },
): Promise<{ readonly rewinds: Rewinds; close(): Promise<void> }> {
  const log = await store.open(sessionId);
  const checkpoints = new Checkpoints({ directory: log.directory, disk, stamp, seal: undoSeal({ stateRoot, disk }) });
  const files = { checkpoints, disk };
  const ignore = (): void => undefined;
  const events = new EventLog({ store: log, stamp, fold: ignore, onListenerDefect: ignore });
  const rewinds = new Rewinds({
    files,
    everything: () => log.everything(),
    view: async () => (events.past.isComplete ? events.events : visibleEvents(await log.everything()).events),
    lastEventId: () => events.events.at(-1)?.id,
    newId: () => stamp.id("rewind"),
    isBusy: () => {
      requireFree(log, "Rewind it there with /rewind, or end that process first.");
      return false;
    },
    alone: (work) => work(),
    rest: async () => void (await finishRewinds(events.events, files)),
    async commit(view, data) {
      await events.rewind(view, data);
      await log.writeSummary(await summaryOf(log, events)).catch(ignore); // lists fall back to the log
    },
  });
  return { rewinds, close: () => log.close() };
}

async function summaryOf(log: SessionLog, { events }: EventLog) {
  const { costUsd } = new Budget(await log.everything()).session;
  return { ...summaryOfEvents(events, log.sessionId, events.at(-1)?.timestamp ?? ""), costUsd };
}
