import type { Emit, EventData } from "../../protocol/event.ts";
import { visibleEvents } from "../../store/log/rewound.ts";
import type { AgentPool } from "../agents/agent-pool.ts";
import type { Conversation } from "../conversation.ts";
import type { EventLog } from "../event-log.ts";
import type { ModeState } from "../modes/mode-state.ts";
import { closeOpen } from "../recover.ts";
import type { SessionOptions } from "../session-options.ts";
import type { MessageQueue } from "../turn/message-queue.ts";
import type { PendingMessages } from "../turn/pending-messages.ts";
import type { PastRewind, RewindPoint, RewindPreview, Rewinds, Rewound } from "./rewinds.ts";

interface SessionRewindsParts {
  readonly options: SessionOptions;
  readonly log: EventLog;
  readonly emit: Emit;
  readonly conversation: Conversation;
  readonly agentPool: AgentPool | undefined;
  readonly queue: MessageQueue;
  readonly pending: PendingMessages;
  readonly modes: ModeState;
  /** Rebuilds all folded state from the log. */
  refold(): void;
  writeSummary(): Promise<void>;
}

/** Rewinds of an open session. The implementation is loaded on first use. */
export class SessionRewinds {
  readonly #parts: SessionRewindsParts;
  #opening: Promise<Rewinds> | undefined;

  constructor(parts: SessionRewindsParts) {
    this.#parts = parts;
  }

  /** Returns one point for each message that started an answer, oldest first. */
  async points(): Promise<readonly RewindPoint[]> {
    return (await this.#open()).points();
  }

  /** Throws if the event does not exist. */
  async preview(eventId: string): Promise<RewindPreview> {
    return (await this.#open()).preview(eventId);
  }

  /**
   * Removes this event and all later ones from view. With `files`, also restores files that no one else has changed
   * since.
   */
  async rewind(eventId: string, options: { readonly files?: boolean } = {}): Promise<Rewound> {
    return (await this.#open()).rewind(eventId, options);
  }

  /** Returns the rewinds that can be undone, latest first. */
  async past(): Promise<readonly PastRewind[]> {
    return (await this.#open()).past();
  }

  /** Undoes the last rewind, or the one named. */
  async restore(request: { readonly rewindId?: string; readonly files?: boolean } = {}): Promise<Rewound> {
    return (await this.#open()).restore(request);
  }

  /**
   * Clears the model's context and starts again with this prompt. The log keeps everything. Returns the number of
   * messages before.
   */
  async clear(prompt: string): Promise<number> {
    const { queue, conversation } = this.#parts;
    const { length } = conversation.entries;
    await queue.startAfresh(prompt, length);
    return length;
  }

  /** Completes the file changes of a rewind that was cut off. */
  async finish(): Promise<void> {
    const { options, emit } = this.#parts;
    const { fileHistory, log } = options;
    if (!fileHistory || !log.events.some(({ type }) => type === "troupe.rewound")) return;
    const { finishRewinds } = await import("./rewind-files.ts");
    const changed = await finishRewinds(log.events, fileHistory);
    if (changed.length === 0) return;
    const message = `Changed meanwhile and not rewound: ${changed.join(", ")}.`;
    void emit("session.warning", { warningType: "rewind", message });
  }

  #open(): Promise<Rewinds> {
    const { options, log, agentPool, queue, pending } = this.#parts;
    this.#opening ??= import("./rewinds.ts").then(
      ({ Rewinds: Made }) =>
        new Made({
          // A long session does not hold all events in memory.
          view: async () => (log.past.isComplete ? log.events : visibleEvents(await options.log.everything()).events),
          lastEventId: () => log.events.at(-1)?.id,
          everything: () => options.log.everything(),
          newId: () => options.stamp.id("rewind"),
          files: options.fileHistory,
          isBusy: () => pending.size > 0 || (agentPool?.isBusy ?? false),
          alone: (work) => queue.alone(work),
          rest: async () => {
            await agentPool?.stopSidekicks();
            await options.compactions?.reset();
            await log.repair();
          },
          commit: async (view, data) => {
            await log.rewind(view, data);
            await this.#rewound(data);
          },
        }),
    );
    return this.#opening;
  }

  /** Rebuilds all state after a rewind. */
  async #rewound({ upToEventId, eventsRemoved }: EventData<"troupe.rewound">): Promise<void> {
    const { options, log, emit, conversation, agentPool, pending, modes, refold, writeSummary } = this.#parts;
    const { events } = log;
    refold();
    pending.forgetNotices();
    modes.rewound(events);
    options.onRewound?.(events);
    void emit("session.snapshot_rewind", { upToEventId, eventsRemoved });
    await closeOpen(conversation, emit);
    await agentPool?.rewound(events);
    await writeSummary().catch(() => undefined); // lists fall back to the log
  }
}
