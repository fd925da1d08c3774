/** Who wants which events: some are made only where somebody will deal with them. */
import type { Connection } from "./connection.ts";

export class Interests {
  readonly #held = new Map<string, { readonly eventType: string; readonly connection: Connection }>();
  #count = 0;

  /** The handle to release it by. */
  register(eventType: string, connection: Connection): string {
    const handle = `interest-${++this.#count}`;
    this.#held.set(handle, { eventType, connection });
    return handle;
  }

  /** Can be done again; false when there was nothing to release. */
  release(handle: string): boolean {
    return this.#held.delete(handle);
  }

  /** Those of a client that has gone. */
  forget(connection: Connection): void {
    for (const [handle, held] of this.#held) if (held.connection === connection) this.#held.delete(handle);
  }

  has(eventType: string): boolean {
    return [...this.#held.values()].some((held) => held.eventType === eventType);
  }
}
