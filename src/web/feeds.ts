/** The feeds of all sessions that somebody watches. A feed is made for its first reader and closed with its last. */
import type { SessionEvent } from "../protocol/event.ts";
import type { LogSource } from "./log-source.ts";
import { OpenRequests } from "./open-requests.ts";
import { type FeedReader, SessionFeed } from "./session-feed.ts";

export class Feeds {
  readonly #sourceOf: (sessionId: string) => LogSource;
  readonly #feeds = new Map<string, SessionFeed>();
  readonly #open = new Set<string>();
  readonly #requests = new OpenRequests();

  constructor(sourceOf: (sessionId: string) => LogSource) {
    this.#sourceOf = sourceOf;
  }

  /** Delivers the session's events after `reader.position`. The caller has checked the id. Returns a function that ends it. */
  follow(sessionId: string, reader: FeedReader): () => void {
    let feed = this.#feeds.get(sessionId);
    if (!feed) {
      feed = new SessionFeed(this.#sourceOf(sessionId), () => this.#requests.of(sessionId));
      feed.setOpen(this.#open.has(sessionId));
      this.#feeds.set(sessionId, feed);
    }
    const own = feed;
    own.add(reader);
    return () => {
      own.remove(reader);
      if (own.hasReaders) return;
      own.close();
      if (this.#feeds.get(sessionId) !== own) return;
      this.#feeds.delete(sessionId);
      if (!this.#open.has(sessionId)) this.#requests.forget(sessionId);
    };
  }

  onEvent(sessionId: string, event: SessionEvent): void {
    this.#requests.onEvent(sessionId, event);
    this.#feeds.get(sessionId)?.onEvent(event);
  }

  /** All requests of a session that are open now, where its log does not tell. */
  announce(sessionId: string, asked: readonly SessionEvent[]): void {
    const feed = this.#feeds.get(sessionId);
    if (feed) for (const event of this.#requests.replace(sessionId, asked)) feed.onEvent(event);
  }

  setOpen(sessionId: string, isLive: boolean): void {
    if (isLive) this.#open.add(sessionId);
    else {
      this.#open.delete(sessionId);
      this.#requests.forget(sessionId);
    }
    this.#feeds.get(sessionId)?.setOpen(isLive);
  }

  /** The log of the session has changed. */
  readNew(sessionId: string): void {
    this.#feeds.get(sessionId)?.readNew();
  }

  close(): void {
    for (const feed of this.#feeds.values()) feed.close();
    this.#feeds.clear();
  }
}
