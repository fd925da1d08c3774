/** Notifies of new events and requests of the sessions that somebody watches: one statement keeps all of them watched. */
import type { SessionEvent } from "../../protocol/event.ts";
import { readable } from "../../runtime/cluster/readable.ts";
import { askedEvent, openRequests } from "../../runtime/cluster/requests.ts";
import { RENEW_MS, watchEvents } from "../../store/postgres/follow.ts";
import { topics } from "../../store/postgres/notifications.ts";
import type { Connection } from "./connection.ts";

/** Sessions that begin to be watched together are told to the database together. */
const TOGETHER_MS = 50;

/** Receives all open requests of a session, as events that its log does not have. */
export type RequestListener = (sessionId: string, asked: readonly SessionEvent[]) => void;

interface Watched {
  readonly stop: Promise<() => void>;
  readonly onChange: () => void;
}

export class WatchedRows {
  readonly #connection: Connection;
  readonly #onRequests: RequestListener;
  readonly #watched = new Map<string, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;

  constructor(connection: Connection, onRequests: RequestListener) {
    this.#connection = connection;
    this.#onRequests = onRequests;
  }

  /** A session is watched once at a time. Returns a function that ends it. */
  add(sessionId: string, onChange: () => void): () => void {
    const readRequests = (): void => void this.#readRequests(sessionId).catch(ignore);
    const stop = this.#connection.use(async ({ database: { notifications } }) => {
      const stops = [
        notifications.subscribe(topics.events(sessionId), onChange),
        notifications.subscribe(topics.session(sessionId), readRequests),
      ];
      return () => {
        for (const end of stops) end();
      };
    });
    stop.catch(ignore);
    const own: Watched = { stop, onChange };
    this.#watched.set(sessionId, own);
    readRequests();
    if (!this.#isDue) this.#renewIn(TOGETHER_MS);
    this.#isDue = true;
    return () => {
      if (this.#watched.get(sessionId) === own) this.#watched.delete(sessionId);
      stop.then((end) => end(), ignore);
    };
  }

  close(): void {
    this.#watched.clear();
    clearTimeout(this.#timer);
  }

  async #readRequests(sessionId: string): Promise<void> {
    const rows = await this.#connection.use(({ database }) => readable(openRequests(database, sessionId)));
    if (rows && this.#watched.has(sessionId)) this.#onRequests(sessionId, rows.map(askedEvent));
  }

  /** Notifications can be lost, so requests and events are looked at from time to time too. */
  #renewIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isDue = false;
      const ids = [...this.#watched.keys()];
      if (ids.length === 0) return;
      this.#renewIn(RENEW_MS);
      // Without the right to it, looks at the list notice changes.
      this.#connection.use(({ database }) => watchEvents(database, ids)).catch(ignore);
      for (const [id, { onChange }] of this.#watched) {
        onChange();
        void this.#readRequests(id).catch(ignore);
      }
    }, ms);
    this.#timer.unref();
  }
}

const ignore = (): void => undefined;
