/** The event types that clients registered for. Some events are sent only if a client handles them. */
import type { ClientConnection } from "../connection.ts";

export class Interests {
  readonly #held = new Map<string, { readonly eventType: string; readonly connection: ClientConnection }>();
  readonly #onChange: () => void;
  #count = 0;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Returns the handle that releases the interest. */
  register(eventType: string, connection: ClientConnection): string {
    const handle = `interest-${++this.#count}`;
    this.#held.set(handle, { eventType, connection });
    this.#onChange();
    return handle;
  }

  /** Returns false if the handle is unknown. Safe to call again. */
  release(handle: string): boolean {
    const wasHeld = this.#held.delete(handle);
    this.#onChange();
    return wasHeld;
  }

  /** Removes the interests of a client that disconnected. */
  forget(connection: ClientConnection): void {
    for (const [handle, held] of this.#held) if (held.connection === connection) this.#held.delete(handle);
    this.#onChange();
  }

  has(eventType: string): boolean {
    return [...this.#held.values()].some((held) => held.eventType === eventType);
  }
}
