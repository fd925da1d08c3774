import type { SessionMode } from "../../commands/command.ts";
import type { Emit, SessionEvent } from "../../protocol/event.ts";
import { modeChange, modeOf } from "./modes.ts";

/** The mode of a session: the last one in the log, or its initial mode. */
export class ModeState {
  readonly #emit: Emit;
  readonly #onMode: (mode: SessionMode) => void;
  #current: SessionMode;

  constructor(options: {
    events: readonly SessionEvent[];
    mode?: SessionMode | undefined;
    emit: Emit;
    onMode?: ((mode: SessionMode) => void) | undefined;
  }) {
    this.#emit = options.emit;
    this.#onMode = options.onMode ?? (() => undefined);
    this.#current = modeOf(options.events) ?? options.mode ?? "interactive";
    this.#onMode(this.#current);
  }

  /**
   * The number of answers that autopilot is currently continuing. While it is above zero, an idle session in autopilot
   * is not done.
   */
  autopilotRuns = 0;

  /** The mode that an idle event names: autopilot if the session will continue automatically. */
  get resting(): { readonly mode?: "autopilot" } {
    return this.autopilotRuns > 0 && this.#current === "autopilot" ? { mode: "autopilot" } : {};
  }

  get current(): SessionMode {
    return this.#current;
  }

  /** Restores the mode after a rewind. */
  rewound(events: readonly SessionEvent[]): void {
    this.#current = modeOf(events) ?? "interactive";
    this.#onMode(this.#current);
  }

  /** Changes the mode from the next model call on. */
  async set(mode: SessionMode): Promise<void> {
    const change = modeChange(this.#current, mode);
    if (!change) return;
    await this.#emit("session.mode_changed", { ...change });
    this.#current = mode;
    this.#onMode(mode);
  }
}
