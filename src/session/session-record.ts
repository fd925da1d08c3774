import type { FileHistory } from "../checkpoints/file-history.ts";
import type { Redactor } from "../lib/redact/redact.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { Emit, SessionEvent } from "../protocol/event.ts";
import type { SessionLog } from "../store/store.ts";
import { Budget } from "./budget/budget.ts";
import type { EventLog, EventPast, Listener } from "./event-log.ts";
import { modelName } from "./model-selection.ts";
import type { SessionRewinds } from "./rewind/session-rewinds.ts";
import type { SessionOptions } from "./session-options.ts";
import { resumeData, type SummaryFacts, startData, summaryOfFacts } from "./summary.ts";
import { RunTotals } from "./turn/run-totals.ts";
import { SessionPreamble } from "./turn/session-preamble.ts";

interface SessionRecordParts {
  readonly options: SessionOptions;
  /** Returns the event log, which folds into this history and exists a moment later. */
  events(): EventLog;
  rewinds(): SessionRewinds;
  /** Whether this process has accepted a message. */
  hasBegun(): boolean;
}

/** Everything that a session's log says: past events, title, name, totals, and how to add to it. */
export class SessionRecord {
  /** Usage and cost of the session and of this process. */
  readonly budget: Budget;
  /** Totals since this process opened the session. */
  readonly totals = new RunTotals();
  readonly preamble = new SessionPreamble();
  readonly startedAt: number;
  readonly #parts: SessionRecordParts;
  #name: string | undefined;
  #summaryWrite: Promise<void> | undefined;

  constructor(parts: SessionRecordParts) {
    this.#parts = parts;
    const { log, stamp } = parts.options;
    this.budget = new Budget([...log.removed, ...log.events]); // usage of rewound events counts too
    this.startedAt = Date.parse(log.events[0]?.timestamp ?? "") || stamp.now();
  }

  /** The session's log and folder in the store. */
  get log(): SessionLog {
    return this.#parts.options.log;
  }

  /** Files before their changes; undefined if they are not recorded. */
  get files(): FileHistory | undefined {
    return this.#parts.options.fileHistory;
  }

  /** The clock and the ids of the events. */
  get stamp(): Stamp {
    return this.#parts.options.stamp;
  }

  /** Removes secrets from everything that is stored. */
  get redactor(): Redactor | undefined {
    return this.#parts.options.redactor;
  }

  /** The session whose learnings this one consolidates. */
  get detachedFrom(): string | undefined {
    return this.#parts.options.detachedFrom;
  }

  /** False if a resume is not reported by an event. */
  get isAnnounced(): boolean {
    return this.#parts.options.resumed !== "silent";
  }

  /** All events of the session, including those no longer in memory. */
  get past(): EventPast {
    return this.#parts.events().past;
  }

  /** The number of `session.events` from before this process. Valid until the first of them is condensed or rewound. */
  get inherited(): number {
    return Math.min(this.log.events.length, this.#parts.events().events.length);
  }

  /** Whether there is anything on disk to resume. */
  get isStored(): boolean {
    return this.#parts.hasBegun() || this.inherited > 0;
  }

  /** Rewinds the session, and undoes rewinds. */
  get rewinds(): SessionRewinds {
    return this.#parts.rewinds();
  }

  /** The title derived from the first message, or set automatically. */
  get title(): string | undefined {
    return this.preamble.title;
  }

  /** The name given by a user or a program. */
  get name(): string | undefined {
    return this.#name;
  }

  /** Emits an event on behalf of a part of the session. */
  readonly emit: Emit = (type, data) => this.#parts.events().emit(undefined, type, data);

  /** Emits a warning. */
  warn(warningType: string, message: string): void {
    void this.emit("session.warning", { warningType, message });
  }

  /** Like `subscribe`, but first passes on all of `events`, or those since this process opened the session. */
  follow(listener: Listener, which: "all" | "own" = "all"): () => void {
    return this.#parts.events().follow(listener, which === "own" ? this.inherited : 0);
  }

  /** Sets the name and emits it as the new title. */
  async rename(name: string): Promise<void> {
    void this.emit("session.title_changed", { title: name });
    await this.emit("troupe.session_named", { name });
    await this.writeSummary().catch(() => undefined); // lists fall back to the log
  }

  /** Sets an automatic title, for a session without a name. */
  async setTitle(title: string): Promise<void> {
    void this.emit("session.title_changed", { title });
    await this.emit("troupe.session_named", { name: title, auto: true });
    await this.writeSummary().catch(() => undefined);
  }

  /** Emits `session.resume` for a client that returns to the open session. */
  rejoined(kind: Exclude<SessionOptions["resumed"], "silent">): Promise<void> {
    return this.resumed(this.past.count, kind);
  }

  /** Emits the first events of a new session. */
  started(): void {
    const { options } = this.#parts;
    void this.emit("session.start", startData(options, this.startedAt));
    if (options.name !== undefined) void this.emit("troupe.session_named", { name: options.name });
    if (options.mode && options.mode !== "interactive") {
      void this.emit("session.mode_changed", { previousMode: "interactive", newMode: options.mode });
    }
  }

  /** Emits `session.resume`. */
  resumed(eventCount: number, kind: SessionOptions["resumed"] = this.#parts.options.resumed): Promise<void> {
    return this.emit("session.resume", {
      ...resumeData(this.#parts.options, eventCount),
      ...(typeof kind === "object" && kind),
    });
  }

  /** Clears the folded state before the log is folded again. Totals stay: a rewind does not refund usage. */
  reset(): void {
    this.preamble.reset();
    this.#name = undefined;
  }

  fold(event: SessionEvent): void {
    this.preamble.apply(event);
    if (event.type === "troupe.session_named" && !event.data.auto) this.#name = event.data.name;
  }

  /** Returns the facts for the session's summary. */
  facts(): SummaryFacts {
    const { stamp, model, context, log, detachedFrom } = this.#parts.options;
    const { name, title, startedAt, budget } = this;
    const now = stamp.now();
    return {
      sessionId: log.sessionId,
      context,
      model: modelName(model),
      name,
      title,
      startedAt,
      now,
      budget,
      detachedFrom,
    };
  }

  /** Writes one after another, so that waiting for the last one waits for all. */
  async writeSummary(): Promise<void> {
    const before = this.#summaryWrite;
    const write = (async () => {
      await before?.catch(() => undefined);
      await this.log.writeSummary(summaryOfFacts(this.facts()));
    })();
    this.#summaryWrite = write;
    await write;
  }
}
