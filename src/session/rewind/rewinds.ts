/**
 * Taking a conversation back to before a message, with or without the files, and taking that back again. The log says
 * so by one event (see `src/store/log/rewound.ts`); nothing of it is ever lost. Works on an open session and, for the
 * command line, on a log alone.
 */

import type { KeptChange } from "../../checkpoints/checkpoints.ts";
import type { FileHistory } from "../../checkpoints/file-history.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData, EventOf, SessionEvent } from "../../protocol/event.ts";
import { viewBefore, viewUpTo } from "../../store/log/rewound.ts";
import { foldSchedules } from "../modes/schedules.ts";
import { changesOf, changesSince, type FilePlan, followPlan, keepPlan, planFiles } from "./rewind-files.ts";
import { isRoot, previewOf, type RewindPoint, type RewindPreview, rewindPoints, turnsIn } from "./rewind-points.ts";

export type { RewindPoint, RewindPreview };

export interface RewindPlace {
  /** The log as it reads now, all of it. */
  view(): Promise<readonly SessionEvent[]>;
  /** Changes whenever something is said. */
  lastEventId(): string | undefined;
  /** Also what is out of view. */
  everything(): Promise<readonly SessionEvent[]>;
  /** Makes it so: from here on the log reads like this, then the event. Nothing has changed when it fails. */
  commit(view: readonly SessionEvent[], data: EventData<"troupe.rewound">): Promise<void>;
  newId(): string;
  readonly files: FileHistory | undefined;
  /** Whatever may still write files or history is at work, or waits. */
  isBusy(): boolean;
  /** Does this while nothing else begins; undefined where something is under way. */
  alone<T>(work: () => Promise<T>): Promise<T | undefined>;
  /** What goes on beside the work has stopped when this resolves. */
  rest(): Promise<void>;
}

export type Rewound =
  | { readonly outcome: "session-busy"; readonly restoredFiles: readonly []; readonly skippedFiles: readonly [] }
  | {
      /** `rollback-incomplete`: the conversation is rewound, the files not all; opening the session again goes on with them. */
      readonly outcome: "success" | "rollback-incomplete";
      readonly eventsRemoved: number;
      readonly restoredFiles: readonly string[];
      readonly skippedFiles: FilePlan["skipped"];
      readonly error?: string;
    };

/** A rewind that can be taken back. */
export interface PastRewind {
  readonly rewindId: string;
  readonly timestamp: string;
  readonly eventsRemoved: number;
  /** The first message that it took out of view. */
  readonly userMessage: string | undefined;
  readonly hadFiles: boolean;
}

/** How the log is to read, and which changes of files are taken back with it. */
interface Target {
  readonly view: readonly SessionEvent[];
  readonly changes: ((all: readonly KeptChange[]) => KeptChange[]) | undefined;
  readonly data: EventData<"troupe.rewound">;
}

const BUSY = { outcome: "session-busy", restoredFiles: [], skippedFiles: [] } as const;

export class Rewinds {
  readonly #place: RewindPlace;

  constructor(place: RewindPlace) {
    this.#place = place;
  }

  /** One for each message that began an answer, oldest first. */
  async points(): Promise<readonly RewindPoint[]> {
    return rewindPoints(await this.#place.view(), this.#place.files);
  }

  /** Throws where there is no such event. */
  async preview(eventId: string): Promise<RewindPreview> {
    return previewOf((await this.#removedBy(eventId)).removed, this.#place.files);
  }

  /** Takes out of view this event and all that came after it. With files: those that nobody else has changed since. */
  async rewind(eventId: string, { files = false }: { readonly files?: boolean } = {}): Promise<Rewound> {
    await this.#removedBy(eventId);
    return this.#apply(async () => {
      const { kept, removed } = await this.#removedBy(eventId);
      return {
        view: kept,
        changes: files ? (all) => changesSince(all, turnsIn(removed)) : undefined,
        data: { upToEventId: eventId, eventsRemoved: removed.length },
      };
    });
  }

  /** The last one first. */
  async past(): Promise<readonly PastRewind[]> {
    const all = await this.#place.everything();
    const marks = all.filter((event): event is EventOf<"troupe.rewound"> => event.type === "troupe.rewound");
    return marks.reverse().map(({ id: rewindId, timestamp, data }) => {
      const from = all.findIndex(({ id }) => id === data.upToEventId);
      const first = from === -1 ? undefined : all.slice(from).find(isRoot);
      const { eventsRemoved, files } = data;
      return { rewindId, timestamp, eventsRemoved, userMessage: first?.data.content, hadFiles: files !== undefined };
    });
  }

  /**
   * Takes the last rewind back, or the one named: the conversation is what it was before it, and what was said since is
   * out of view. With files: also those that the rewind had brought back.
   */
  async restore(wish: { readonly rewindId?: string; readonly files?: boolean } = {}): Promise<Rewound> {
    return this.#apply(async () => {
      const { rewindId, files = false } = wish;
      const all = await this.#place.everything();
      const isMeant = (event: SessionEvent): event is EventOf<"troupe.rewound"> =>
        event.type === "troupe.rewound" && (rewindId === undefined || event.id === rewindId);
      const mark = all.findLast(isMeant);
      const view = mark && viewBefore(all, mark.id);
      if (!mark || !view) throw nothingToRestore(rewindId);
      const { files: name } = mark.data;
      const known = new Set(view.map(({ id }) => id));
      return {
        view,
        changes: files && name !== undefined ? (changes) => changesOf(changes, name) : undefined,
        data: {
          upToEventId: mark.id,
          eventsRemoved: (await this.#place.view()).filter(({ id }) => !known.has(id)).length,
          restores: mark.id,
        },
      };
    });
  }

  async #apply(choose: () => Promise<Target>): Promise<Rewound> {
    const place = this.#place;
    if (place.isBusy()) return BUSY;
    const done = await place.alone(async (): Promise<Rewound> => {
      await place.rest();
      const last = place.lastEventId();
      const { view, changes, data } = await choose();
      const planned = await this.#plan(changes, place.newId());
      // Somebody may have spoken meanwhile: what was accepted is answered, not taken out of view.
      const now = await place.view();
      if (place.isBusy() || place.lastEventId() !== last) return BUSY;
      const ended = endedSchedules(view, now);
      const lastEventId = view.at(-1)?.id;
      await place.commit(view, {
        ...data,
        ...(lastEventId !== undefined && { lastEventId }),
        ...(planned && planned.plan.steps.length > 0 && { files: planned.name }),
        ...(ended.length > 0 && { endedSchedules: ended }),
      });
      return this.#follow(planned, data.eventsRemoved);
    });
    return done ?? BUSY;
  }

  async #follow(planned: Awaited<ReturnType<typeof keepPlan>> | undefined, eventsRemoved: number): Promise<Rewound> {
    const { files } = this.#place;
    const done = { eventsRemoved, skippedFiles: planned?.plan.skipped ?? [] };
    const restoredFiles = planned?.plan.steps.map(({ path }) => path) ?? [];
    if (!planned || !files || restoredFiles.length === 0) return { outcome: "success", ...done, restoredFiles };
    try {
      await followPlan(planned.plan, files, planned.name);
      return { outcome: "success", ...done, restoredFiles };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { outcome: "rollback-incomplete", ...done, restoredFiles: [], error: message };
    }
  }

  async #plan(choose: ((all: readonly KeptChange[]) => KeptChange[]) | undefined, rewindId: string) {
    const { files } = this.#place;
    if (!choose || !files) return undefined;
    const plan = await planFiles(choose(await files.checkpoints.changes()));
    return keepPlan(plan, files, rewindId);
  }

  async #removedBy(eventId: string): Promise<{ kept: readonly SessionEvent[]; removed: readonly SessionEvent[] }> {
    const view = await this.#place.view();
    const kept = viewUpTo(view, eventId);
    if (!kept) throw new TroupeError("usage", `Event ${eventId} not found in this session.`);
    if (kept.length === 0) {
      const hint = "Rewind to a message, or start a new session.";
      throw new TroupeError("usage", "A session cannot be rewound to before its beginning.", { hint });
    }
    return { kept, removed: view.slice(kept.length) };
  }
}

/** Prompts that the view would have wait, and that were sent or cancelled since: they are not sent again. */
function endedSchedules(view: readonly SessionEvent[], now: readonly SessionEvent[]): number[] {
  const left = new Set(foldSchedules(now).left.map(({ created }) => created.id));
  const known = new Set(now.flatMap(({ type, data }) => (type === "session.schedule_created" ? [data.id] : [])));
  const waiting = foldSchedules(view).left.map(({ created }) => created.id);
  return waiting.filter((id) => known.has(id) && !left.has(id));
}

function nothingToRestore(rewindId: string | undefined): TroupeError {
  if (rewindId === undefined) return new TroupeError("usage", "Nothing was rewound in this session.");
  return new TroupeError("usage", `There is no rewind ${rewindId} in this session.`, {
    hint: "See `troupe rewind --list`.",
  });
}
