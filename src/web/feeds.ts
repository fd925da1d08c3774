/** The feeds of all sessions that somebody watches. A feed is made for its first reader and closed with its last. */
import { join } from "node:path";
import type { SessionEvent } from "../protocol/event.ts";
import { type FeedReader, SessionFeed } from "./session-feed.ts";

export class Feeds {
  readonly #home: string;
  readonly #onLock: (sessionId: string) => void;
  readonly #feeds = new Map<string, SessionFeed>();
  readonly #live = new Set<string>();

  /** `onLock` is called when a process opens or leaves a session that is followed. */
  constructor(home: string, onLock: (sessionId: string) => void) {
    this.#home = home;
    this.#onLock = onLock;
  }

  /** Delivers the session's events after `reader.position`. The caller has checked the id. Returns a function that ends it. */
  follow(sessionId: string, reader: FeedReader): () => void {
    let feed = this.#feeds.get(sessionId);
    if (!feed) {
      const path = join(this.#home, "session-state", sessionId, "events.jsonl");
      feed = new SessionFeed(path, () => this.#onLock(sessionId));
      feed.setLive(this.#live.has(sessionId));
      this.#feeds.set(sessionId, feed);
    }
    const own = feed;
    own.add(reader);
    return () => {
      own.remove(reader);
      if (own.hasReaders) return;
      own.close();
      if (this.#feeds.get(sessionId) === own) this.#feeds.delete(sessionId);
    };
  }

  hear(sessionId: string, event: SessionEvent): void {
    this.#feeds.get(sessionId)?.hear(event);
  }

  setLive(sessionId: string, isLive: boolean): void {
    if (isLive) this.#live.add(sessionId);
    else this.#live.delete(sessionId);
    this.#feeds.get(sessionId)?.setLive(isLive);
  }

  /** The log of the session has changed. */
  look(sessionId: string): void {
    this.#feeds.get(sessionId)?.look();
  }

  close(): void {
    for (const feed of this.#feeds.values()) feed.close();
    this.#feeds.clear();
  }
}
