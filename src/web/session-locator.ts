/** Finds the log of a session: in a folder of this machine, or else in the database of a cluster. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { Store } from "../store/store.ts";
import { fileSource, type LogSource } from "./log-source.ts";

/** The sessions of a database, as the other parts of the dashboard need them. */
export interface DatabaseSessions {
  has(sessionId: string): Promise<boolean>;
  sourceOf(sessionId: string): LogSource;
  events(sessionId: string): AsyncIterable<SessionEvent>;
}

export interface SessionLocatorOptions {
  readonly home: string;
  readonly store: Pick<Store, "events">;
  readonly database: DatabaseSessions | undefined;
  /** A process has opened or left a session of this machine that is followed. */
  onLock(sessionId: string): void;
}

export class SessionLocator {
  readonly #options: SessionLocatorOptions;
  /** Sessions that were found in the database. */
  readonly #found = new Set<string>();

  constructor(options: SessionLocatorOptions) {
    this.#options = options;
  }

  async isInDatabase(sessionId: string): Promise<boolean> {
    const { database } = this.#options;
    if (!database || this.isHere(sessionId)) return false;
    if (!this.#found.has(sessionId) && (await database.has(sessionId))) this.#found.add(sessionId);
    return this.#found.has(sessionId);
  }

  /** The session was read from the database before. */
  isKnownInDatabase(sessionId: string): boolean {
    return this.#found.has(sessionId);
  }

  isHere(sessionId: string): boolean {
    return existsSync(this.#log(sessionId));
  }

  /** Throws for what needs the files of a session on this machine. */
  async requireHere(sessionId: string): Promise<void> {
    if (!(await this.isInDatabase(sessionId))) return;
    throw new TroupeError("usage", "The files of this session are on the machines of workers.", {
      hint: "Its repository has them under refs/troupe.",
    });
  }

  async *events(sessionId: string): AsyncGenerator<SessionEvent> {
    const { store, database } = this.#options;
    const own = database && (await this.isInDatabase(sessionId)) ? database : store;
    yield* own.events(sessionId);
  }

  /** The source finds the place at its first use. */
  sourceOf(sessionId: string): LogSource {
    const { database, onLock } = this.#options;
    const file = fileSource(this.#log(sessionId), () => onLock(sessionId));
    if (!database) return file;
    const remote = database.sourceOf(sessionId);
    const chosen = async (): Promise<LogSource> => ((await this.isInDatabase(sessionId)) ? remote : file);
    return {
      read: async (after) => (await chosen()).read(after),
      watch(onChange) {
        const stops = [file.watch(onChange)];
        let isOver = false;
        const add = (source: LogSource): void => {
          if (source === remote && !isOver) stops.push(remote.watch(onChange));
        };
        chosen().then(add, () => undefined);
        return () => {
          isOver = true;
          for (const stop of stops) stop();
        };
      },
    };
  }

  #log(sessionId: string): string {
    return join(this.#options.home, "session-state", sessionId, "events.jsonl");
  }
}
