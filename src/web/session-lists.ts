/** The lists of sessions of several locations as one. The first location is always there; another one may be out of reach for a while. */
import type { ListMessage, SessionRow } from "./api.ts";
import type { SessionListRows } from "./session-rows.ts";

export class SessionLists {
  readonly #first: SessionListRows;
  readonly #others: readonly SessionListRows[];

  constructor(first: SessionListRows, ...others: readonly SessionListRows[]) {
    this.#first = first;
    this.#others = others;
  }

  /** Calls the listener with the whole list of the first location, then with what others add, and with changes. */
  async follow(listener: (message: ListMessage) => void): Promise<() => void> {
    const stops = [this.#first.follow(listener)];
    await stops[0];
    for (const list of this.#others) {
      stops.push(list.follow((message) => listener({ ...message, isWhole: false })));
    }
    return () => {
      for (const stop of stops) void stop.then((end) => end());
    };
  }

  /** Leaves out locations that cannot be read. */
  async rows(): Promise<readonly SessionRow[]> {
    const others = await Promise.allSettled(this.#others.map((list) => list.rows()));
    const found = others.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    return [...(await this.#first.rows()), ...found];
  }

  changed(sessionId: string): void {
    for (const list of [this.#first, ...this.#others]) list.changed(sessionId);
  }

  close(): void {
    for (const list of [this.#first, ...this.#others]) list.close();
  }
}
