/** Who wants which events: some are made only where somebody will deal with them. */
import type { Connection } from "../connection.ts";

export class Interests {
  readonly #held = new Map<string, { readonly eventType: string; readonly connection: Connection }>();
  readonly #onChange: () => void;
  #count = 0;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** The handle to release it by. */
  register(eventType: string, connection: Connection): string {
    const handle = `interest-${++this.#count}`;
    this.#held.set(handle, { eventType, connection });
    this.#onChange();
    return handle;
  }

  /** Can be done again; false when there was nothing to release. */
  release(handle: string): boolean {
    const wasHeld = this.#held.delete(handle);
    this.#onChange();
    return wasHeld;
  }

  /** Those of a client that has gone. */
  forget(connection: Connection): void {
    for (const [handle, held] of this.#held) if (held.connection === connection) this.#held.delete(handle);
    this.#onChange();
  }

  has(eventType: string): boolean {
    return [...this.#held.values()].some((held) => held.eventType === eventType);
  }
}
