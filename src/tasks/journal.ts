import { setMaxListeners } from "node:events";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Emit, EventData, EventType, SessionEvent } from "../protocol/event.ts";

export interface JournalPorts {
  readonly emit: Emit;
  /**
   * After a failed `emit`: makes the log whole. Resolves once everything said before is either in the log and told to
   * listeners, or never will be. Without it, a failed `emit` means that the event is nowhere.
   */
  readonly repair?: () => Promise<void>;
  /** Takes back what could not be written. */
  readonly unsay?: (isMeant: (event: SessionEvent) => boolean) => boolean;
  readonly stamp: Stamp;
  /** The log cannot be written at the moment; said with each try. */
  readonly onTrouble: (error: unknown) => void;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Says what the registry decided. Nothing is taken for true before it stands in the log: what cannot be written is tried
 * again until it can or the session closes, and the task stays where it was.
 */
export class Journal {
  readonly #ports: JournalPorts;
  readonly #closed = new AbortController();
  #repairing: Promise<void> | undefined;
  #trouble: string | undefined;

  constructor(ports: JournalPorts) {
    this.#ports = ports;
    setMaxListeners(0, this.#closed.signal); // every task may wait for the log at the same time
  }

  /** Why nothing can be written at the moment. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Resolves when the event stands in the log, as `stands` tells. Rejects only when closed. */
  async keep<T extends EventType>(type: T, data: EventData<T>, stands: () => boolean): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      this.#closed.signal.throwIfAborted();
      try {
        await this.#ports.emit(type, data);
        this.#trouble = undefined;
        if (stands()) return;
        throw new Defect(`${type} was written, but the registry was not told of it: is observe() wired?`);
      } catch (error) {
        if (error instanceof Defect) throw error;
        this.#note(error);
      }
      await this.writable();
      if (stands()) return;
      await this.#ports.stamp.sleep(pauseMs, this.#closed.signal);
    }
  }

  /** As `keep`, but what cannot be written at once is taken back and the failure thrown. */
  async offer<T extends EventType>(
    type: T,
    data: EventData<T>,
    isMeant: (event: SessionEvent) => boolean,
  ): Promise<void> {
    try {
      await this.#ports.emit(type, data);
      this.#trouble = undefined;
    } catch (error) {
      this.#note(error);
      this.#ports.unsay?.(isMeant);
      const reason = error instanceof Error ? error.message : String(error);
      throw new TroupeError("storage", `The session's log cannot be written: ${reason}`, {
        hint: "Make room on the disk, then try again.",
        cause: error,
      });
    }
  }

  /** Resolves when the log can be written and holds everything said before. Rejects only when closed. */
  async writable(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      this.#closed.signal.throwIfAborted();
      if (await this.#repaired()) return;
      await this.#ports.stamp.sleep(pauseMs, this.#closed.signal);
    }
  }

  /** Ends every wait for the log. */
  close(): void {
    this.#closed.abort(new TroupeError("interrupted", "The session was closed."));
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** One repair at a time, whoever asks. */
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
