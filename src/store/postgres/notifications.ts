/**
 * Notifications of the database: one connection that listens. A notification names a topic and carries no data; whoever
 * gets it reads the rows. Notifications can be lost, so every wait also looks at the rows from time to time.
 */

import { createHash } from "node:crypto";
import type { Client } from "pg";

/** All processes use one channel. The payload is the topic. */
export const CHANNEL = "troupe";

/** Every role may listen, that of another tenant too. So topics are hashes, which name no session, job, pool or machine. */
const topicOf = (kind: string, id: string): string => createHash("sha256").update(`${kind}:${id}`).digest("hex");

/** Topics of notifications. */
export const topics = {
  events: (sessionId: string): string => topicOf("events", sessionId),
  /** The work has an outcome, waits for a person, or shall end. */
  work: (workId: string): string => topicOf("work", workId),
  /** A request or work of the session was made, answered or has ended. */
  session: (sessionId: string): string => topicOf("session", sessionId),
  /** Work of the pool waits for a slot. */
  queue: (pool: string): string => topicOf("queue", pool),
  /** The worker shall drain, or take work again. */
  worker: (workerId: string): string => topicOf("worker", workerId),
};

/** Returns an SQL expression that notifies of a topic. `id` is one, too. */
export const notifying = (kind: keyof typeof topics, id: string): string =>
  `pg_notify('${CHANNEL}', encode(sha256(convert_to('${kind}:' || ${id}, 'UTF8')), 'hex'))`;

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 5_000;

export class Notifications {
  readonly #newClient: () => Promise<Client>;
  readonly #listeners = new Map<string, Set<() => void>>();
  #client: Client | undefined;
  #connecting: Promise<void> | undefined;
  #isClosed = false;

  constructor(newClient: () => Promise<Client>) {
    this.#newClient = newClient;
  }

  /** Calls the listener after notifications of this topic, and after each connect. Returns a function that ends it. */
  subscribe(topic: string, listener: () => void): () => void {
    const all = this.#listeners.get(topic) ?? new Set();
    all.add(listener);
    this.#listeners.set(topic, all);
    if (!this.#client) this.#connecting ??= this.#connect();
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#listeners.get(topic) === all) this.#listeners.delete(topic);
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    await this.#connecting;
    await this.#client?.end().catch(() => undefined);
  }

  async #connect(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#isClosed; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
      try {
        this.#client = await this.#listen();
        this.#connecting = undefined;
        for (const all of this.#listeners.values()) for (const listener of all) listener();
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      }
    }
  }

  async #listen(): Promise<Client> {
    const client = await this.#newClient();
    client.on("notification", ({ payload }) => {
      for (const listener of this.#listeners.get(payload ?? "") ?? []) listener();
    });
    client.on("error", () => undefined);
    client.on("end", () => {
      this.#client = undefined;
      if (!this.#isClosed && this.#listeners.size > 0) this.#connecting ??= this.#connect();
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }
}

/** Rows are looked at after this time if no notification arrives. */
const POLL_MS = 2_000;
/** The first look is repeated soon: a notification may be sent before the subscription is complete. */
const FIRST_POLL_MS = 250;

/** Yields at once, then whenever a notification of one of these topics arrives or some time has passed. */
export async function* changes(
  notifications: Pick<Notifications, "subscribe">,
  wanted: readonly string[],
  { signal, pollMs = POLL_MS }: { readonly signal: AbortSignal; readonly pollMs?: number },
): AsyncGenerator<void> {
  let isDue = true;
  let wake: () => void = () => undefined;
  const notice = (): void => {
    isDue = true;
    wake();
  };
  const stops = wanted.map((topic) => notifications.subscribe(topic, notice));
  signal.addEventListener("abort", notice);
  try {
    for (let waitMs = Math.min(FIRST_POLL_MS, pollMs); !signal.aborted; waitMs = pollMs) {
      isDue = false;
      yield;
      if (isDue || signal.aborted) continue;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    signal.removeEventListener("abort", notice);
    for (const stop of stops) stop();
  }
}
