/**
 * Rewinding a session: moving a conversation back to before a message, with or without files, and undoing that. The log
 * records it as one event (see `src/store/log/rewound.ts`); no event is ever lost.
 * Works on an open session and, for the command line, on a closed log. This folder also holds forks.
 */

import type { StoredChange } from "../../checkpoints/checkpoints.ts";
import type { FileHistory } from "../../checkpoints/file-history.ts";
import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData, EventOf, SessionEvent } from "../../protocol/event.ts";
import { viewBefore, viewUpTo } from "../../store/log/rewound.ts";
import { foldSchedules } from "../modes/schedules.ts";
import { changesOf, changesSince, type FilePlan, followPlan, planFiles, storePlan } from "./rewind-files.ts";
import { isRoot, previewOf, type RewindPoint, type RewindPreview, removedPart, rewindPoints } from "./rewind-points.ts";

export type { RewindPoint, RewindPreview };

export interface RewindPorts {
  /** Returns the complete current view of the log. */
  view(): Promise<readonly SessionEvent[]>;
  /** Changes with every event. */
  lastEventId(): string | undefined;
  /** Returns all events, including those out of view. */
  everything(): Promise<readonly SessionEvent[]>;
  /** Commits a new view of the log, followed by the event. If it fails, nothing has changed. */
  commit(view: readonly SessionEvent[], data: EventData<"troupe.rewound">): Promise<void>;
  newId(): string;
  readonly files: FileHistory | undefined;
  /** Whether anything that may write files or history is running or queued. */
  isBusy(): boolean;
  /** Runs `work` while nothing else starts. Returns undefined if something is already running. */
  alone<T>(work: () => Promise<T>): Promise<T | undefined>;
  /** Resolves when background work has stopped. */
  rest(): Promise<void>;
}

export type Rewound =
  | { readonly outcome: "session-busy"; readonly restoredFiles: readonly []; readonly skippedFiles: readonly [] }
  | {
      /**
       * `rollback-incomplete`: the conversation is rewound, but not all files. Opening the session again completes
       * them.
       */
      readonly outcome: "success" | "rollback-incomplete";
      readonly eventsRemoved: number;
      readonly restoredFiles: readonly string[];
      readonly skippedFiles: FilePlan["skipped"];
      readonly error?: string;
    };

/** A rewind that can be undone. */
export interface PastRewind {
  readonly rewindId: string;
  readonly timestamp: string;
  readonly eventsRemoved: number;
  /** The first message that it removed from view. */
  readonly userMessage: string | undefined;
  readonly hadFiles: boolean;
}

/** The new view of the log, and the file changes to undo with it. */
interface Target {
  readonly view: readonly SessionEvent[];
  readonly changes: ((all: readonly StoredChange[]) => StoredChange[]) | undefined;
  readonly data: EventData<"troupe.rewound">;
}

const BUSY = { outcome: "session-busy", restoredFiles: [], skippedFiles: [] } as const;

export class Rewinds {
  readonly #ports: RewindPorts;

  constructor(ports: RewindPorts) {
    this.#ports = ports;
  }

  /** Returns one point for each message that started an answer, oldest first. */
  async points(): Promise<readonly RewindPoint[]> {
    return rewindPoints(await this.#ports.view(), this.#ports.files);
  }

  /** Throws if the event does not exist. */
  async preview(eventId: string): Promise<RewindPreview> {
    return previewOf((await this.#removedBy(eventId)).removed, this.#ports.files);
  }

  /**
   * Removes this event and all later ones from view. With `files`, also restores files that no one else has changed
   * since.
   */
  async rewind(eventId: string, { files = false }: { readonly files?: boolean } = {}): Promise<Rewound> {
    await this.#removedBy(eventId);
    return this.#apply(async () => {
      const { visible, removed } = await this.#removedBy(eventId);
      return {
        view: visible,
        changes: files ? (all) => changesSince(all, removedPart(removed)) : undefined,
        data: { upToEventId: eventId, eventsRemoved: removed.length },
      };
    });
  }

  /** Returns the rewinds that can be undone, latest first. */
  async past(): Promise<readonly PastRewind[]> {
    const all = await this.#ports.everything();
    const marks = all.filter((event): event is EventOf<"troupe.rewound"> => event.type === "troupe.rewound");
    return marks.reverse().map(({ id: rewindId, timestamp, data }) => {
      const from = all.findIndex(({ id }) => id === data.upToEventId);
      const first = from === -1 ? undefined : all.slice(from).find(isRoot);
      const { eventsRemoved, files } = data;
      return { rewindId, timestamp, eventsRemoved, userMessage: first?.data.content, hadFiles: files !== undefined };
    });
  }

  /**
   * Undoes the last rewind, or the one named. The conversation is as before that rewind, and later events are removed
   * from view. With `files`, also undoes the rewind's file changes.
   */
  async restore(request: { readonly rewindId?: string; readonly files?: boolean } = {}): Promise<Rewound> {
    return this.#apply(async () => {
      const { rewindId, files = false } = request;
      const all = await this.#ports.everything();
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
          eventsRemoved: (await this.#ports.view()).filter(({ id }) => !known.has(id)).length,
          restores: mark.id,
        },
      };
    });
  }

  async #apply(choose: () => Promise<Target>): Promise<Rewound> {
    const ports = this.#ports;
    if (ports.isBusy()) return BUSY;
    const done = await ports.alone(async (): Promise<Rewound> => {
      await ports.rest();
      const last = ports.lastEventId();
      const { view, changes, data } = await choose();
      const planned = await this.#plan(changes, ports.newId());
      // A message may have been accepted meanwhile: it must be answered, not removed from view.
      const now = await ports.view();
      if (ports.isBusy() || ports.lastEventId() !== last) return BUSY;
      const ended = endedSchedules(view, now);
      const lastEventId = view.at(-1)?.id;
      await ports.commit(view, {
        ...data,
        ...defined({ lastEventId }),
        ...(planned && planned.plan.steps.length > 0 && { files: planned.name }),
        ...(ended.length > 0 && { endedSchedules: ended }),
      });
      return this.#follow(planned, data.eventsRemoved);
    });
    return done ?? BUSY;
  }

  async #follow(planned: Awaited<ReturnType<typeof storePlan>> | undefined, eventsRemoved: number): Promise<Rewound> {
    const { files } = this.#ports;
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

  async #plan(choose: ((all: readonly StoredChange[]) => StoredChange[]) | undefined, rewindId: string) {
    const { files } = this.#ports;
    if (!choose || !files) return undefined;
    const plan = await planFiles(choose(await files.checkpoints.changes()));
    return storePlan(plan, files, rewindId);
  }

  async #removedBy(eventId: string): Promise<{ visible: readonly SessionEvent[]; removed: readonly SessionEvent[] }> {
    const view = await this.#ports.view();
    const visible = viewUpTo(view, eventId);
    if (!visible) throw new TroupeError("usage", `Event ${eventId} not found in this session.`);
    if (visible.length === 0) {
      const hint = "Rewind to a message, or start a new session.";
      throw new TroupeError("usage", "A session cannot be rewound to before its beginning.", { hint });
    }
    return { visible, removed: view.slice(visible.length) };
  }
}

/** Returns schedules that the view contains but that were sent or cancelled since: they are not sent again. */
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
