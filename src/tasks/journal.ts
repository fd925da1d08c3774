import { setMaxListeners } from "node:events";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Emit, EventData, EventType, SessionEvent } from "../protocol/event.ts";

export interface TaskJournalPorts {
  readonly emit: Emit;
  /**
   * Repairs the log after a failed `emit`. Resolves once every earlier event is either logged and observed, or
   * discarded for good. Without it, a failed `emit` means that the event is lost.
   */
  readonly repair?: () => Promise<void>;
  /** Withdraws an event that could not be written. */
  readonly discard?: (matches: (event: SessionEvent) => boolean) => boolean;
  readonly stamp: Stamp;
  /** Called with each failed attempt to write the log. */
  readonly onTrouble: (error: unknown) => void;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Writes the registry's decisions to the log. A decision takes effect only when it is logged. Failed writes are retried
 * until they succeed or the session closes; until then the task keeps its state.
 */
export class TaskJournal {
  readonly #ports: TaskJournalPorts;
  readonly #closed = new AbortController();
  #repairing: Promise<void> | undefined;
  #trouble: string | undefined;

  constructor(ports: TaskJournalPorts) {
    this.#ports = ports;
    setMaxListeners(0, this.#closed.signal); // every task may wait for the log at the same time
  }

  /** The reason why the log cannot currently be written, or undefined. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Resolves when the event is logged and `isApplied` confirms it. Retries failed writes. Rejects only when closed. */
  async write<T extends EventType>(type: T, data: EventData<T>, isApplied: () => boolean): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      this.#closed.signal.throwIfAborted();
      try {
        await this.#ports.emit(type, data);
        this.#trouble = undefined;
        if (isApplied()) return;
        throw new Defect(`${type} was written, but the registry did not observe it: is observe() called?`);
      } catch (error) {
        if (error instanceof Defect) throw error;
        this.#note(error);
      }
      await this.writable();
      if (isApplied()) return;
      await this.#ports.stamp.sleep(pauseMs, this.#closed.signal);
    }
  }

  /** Like `write`, but does not retry: withdraws the event and throws if it cannot be written. */
  async offer<T extends EventType>(
    type: T,
    data: EventData<T>,
    matches: (event: SessionEvent) => boolean,
  ): Promise<void> {
    try {
      await this.#ports.emit(type, data);
      this.#trouble = undefined;
    } catch (error) {
      this.#note(error);
      this.#ports.discard?.(matches);
      const reason = error instanceof Error ? error.message : String(error);
      throw new TroupeError("storage", `The session's log cannot be written: ${reason}`, {
        hint: "Free some space, then try again.",
        cause: error,
      });
    }
  }

  /** Resolves when the log is writable and contains all earlier events. Rejects only when closed. */
  async writable(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      this.#closed.signal.throwIfAborted();
      if (await this.#repaired()) return;
      await this.#ports.stamp.sleep(pauseMs, this.#closed.signal);
    }
  }

  /** Ends all waits for the log. */
  close(): void {
    this.#closed.abort(new TroupeError("interrupted", "The session was closed."));
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Repairs the log. Concurrent callers share one repair. */
  async #repaired(): Promise<boolean> {
    this.#repairing ??= (this.#ports.repair?.() ?? Promise.resolve()).finally(() => {
      this.#repairing = undefined;
    });
    try {
      await this.#repairing;
      this.#trouble = undefined;
      return true;
    } catch (error) {
      this.#note(error);
      return false;
    }
  }

  #note(error: unknown): void {
    this.#trouble = error instanceof Error ? error.message : String(error);
    this.#ports.onTrouble(error);
  }
}

class Defect extends Error {}
