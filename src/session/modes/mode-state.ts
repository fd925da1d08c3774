import type { SessionMode } from "../../commands/command.ts";
import type { Emit, SessionEvent } from "../../protocol/event.ts";
import { modeChange, modeOf } from "./modes.ts";

/** The mode of a session: what the log says last, else what it began with. */
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

  /** Answers that autopilot continues by itself. While there is one, a rest in autopilot is not the end of the work. */
  flights = 0;

  /** The mode that a rest of the session names: autopilot while it will go on by itself. */
  get resting(): { readonly mode?: "autopilot" } {
    return this.flights > 0 && this.#current === "autopilot" ? { mode: "autopilot" } : {};
  }

  get current(): SessionMode {
    return this.#current;
  }

  /** The log reads otherwise now. */
  rewound(events: readonly SessionEvent[]): void {
    this.#current = modeOf(events) ?? "interactive";
    this.#onMode(this.#current);
  }

  /** From the next model call on the agent works in this mode. */
  async set(mode: SessionMode): Promise<void> {
    const change = modeChange(this.#current, mode);
    if (!change) return;
    await this.#emit("session.mode_changed", { ...change });
    this.#current = mode;
    this.#onMode(mode);
  }
}
