/**
 * The events of one session for all tabs that watch it. Stored events come from the log, so that sessions of other
 * processes and finished ones are shown the same way, and numbered by their line. Events that are not stored come from the
 * process that has the session open. Every message is encoded once, however many tabs read it.
 */
import type { SessionEvent } from "../protocol/event.ts";
import type { LogLine } from "../store/log/log-lines.ts";
import type { LogSource } from "./log-source.ts";

/** Receives the events of a session in order. */
export interface FeedReader {
  /** Number of the last stored event that it has. The feed advances it. */
  position: number;
  /**
   * Takes events as JSON texts, in order. `last` is the number of the last stored one. Returns true when it can take more, a
   * promise when it must be waited for, and false when it has gone.
   */
  take(events: readonly string[], last: number): boolean | Promise<boolean>;
  /** Called once when it has everything that is stored. */
  caughtUp(): void;
}

/** Events of one burst go out together. */
const BATCH_MS = 25;
/** Fallback: stored events of a live session are read from the log after this time, even without a report. */
const UNREPORTED_MS = 1_000;
/** Pause before a log that could not be read is read again. */
const RETRY_MS = 1_000;
/** Ephemeral events that may wait for a batch. Beyond it the oldest are dropped: they are repeated whole later. */
const MAX_WAITING = 5_000;

export class SessionFeed {
  readonly #source: LogSource;
  readonly #repeated: () => readonly string[];
  /** Readers that have everything up to `#head`. */
  readonly #readers = new Set<FeedReader>();
  readonly #catchingUp = new Set<FeedReader>();
  #head = 0;
  /** Stored events that were read and wait for the events that were emitted before them. */
  #pending: LogLine[] = [];
  #batch: { readonly json: string; readonly number: number | undefined }[] = [];
  #work: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #unreported: NodeJS.Timeout | undefined;
  readonly #stopWatching: () => void;
  #isOpen = false;
  #isReadScheduled = false;
  #isClosed = false;

  /** `repeated` returns events that are not stored and that every new reader needs. */
  constructor(source: LogSource, repeated: () => readonly string[] = () => []) {
    this.#source = source;
    this.#repeated = repeated;
    this.#stopWatching = source.watch(() => this.readNew());
  }

  get hasReaders(): boolean {
    return this.#readers.size + this.#catchingUp.size > 0;
  }

  /** Delivers everything after `reader.position`, then what follows. */
  add(reader: FeedReader): void {
    this.#catchingUp.add(reader);
    void this.#catchUp(reader);
  }

  remove(reader: FeedReader): void {
    this.#readers.delete(reader);
    this.#catchingUp.delete(reader);
  }

  /** The process of this feed has the session open: `onEvent` receives its events from now on. */
  setOpen(isLive: boolean): void {
    this.#isOpen = isLive;
    if (!isLive) this.readNew();
  }

  /** For live sessions: an event, in the order in which the session emitted them. */
  onEvent(event: SessionEvent): void {
    if (event.ephemeral === true) {
      const json = JSON.stringify(event);
      this.#then(() => this.#add(json, undefined));
    } else {
      this.#then(() => this.#readUpTo(event.id));
    }
  }

  /** Reads what was appended to the log. Cheap when there is nothing. */
  readNew(): void {
    if (this.#isReadScheduled || this.#isClosed) return;
    if (this.#isOpen) {
      this.#unreported ??= setTimeout(() => {
        this.#unreported = undefined;
        this.#then(() => this.#readUpTo(undefined));
      }, UNREPORTED_MS);
      return;
    }
    this.#isReadScheduled = true;
    this.#then(() => {
      this.#isReadScheduled = false;
      return this.#readUpTo(undefined);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
    clearTimeout(this.#timer);
    clearTimeout(this.#unreported);
    this.#readers.clear();
    this.#catchingUp.clear();
  }

  #then(step: () => unknown): void {
    this.#work = this.#work.then(step).catch(() => undefined);
  }

  async #catchUp(reader: FeedReader): Promise<void> {
    while (this.#catchingUp.has(reader)) {
      const page = await this.#source.read(reader.position).catch(() => undefined);
      if (!this.#catchingUp.has(reader)) break;
      if (!page) {
        // A database may be unreachable for a while.
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
        continue;
      }
      reader.position = page.last;
      const events = page.lines.map(({ json }) => json);
      if (events.length > 0 && !(await reader.take(events, page.last))) break;
      if (!page.isEnd) continue;
      this.#then(() => this.#join(reader));
      return;
    }
    this.#catchingUp.delete(reader);
  }

  /** Serialised with deliveries, so that no event is missed or given twice. */
  async #join(reader: FeedReader): Promise<void> {
    if (!this.#catchingUp.has(reader)) return;
    this.#flush();
    if (this.#readers.size === 0) {
      this.#head = reader.position;
      this.#pending = [];
    }
    if (reader.position < this.#head) {
      void this.#catchUp(reader);
      return;
    }
    // It may be ahead: what is pending for the others comes to it a second time, and is left out there.
    this.#catchingUp.delete(reader);
    this.#readers.add(reader);
    const repeated = this.#repeated();
    if (repeated.length > 0) void reader.take(repeated, reader.position);
    reader.caughtUp();
  }

  async #readUpTo(eventId: string | undefined): Promise<void> {
    // Readers that catch up read the file by themselves.
    if (this.#readers.size === 0) return;
    const isThere = (): boolean => eventId !== undefined && this.#pending.some((line) => idOf(line.json) === eventId);
    if (!isThere()) {
      for (let isEnd = false; !isEnd; ) {
        const page = await this.#source.read(this.#pending.at(-1)?.number ?? this.#head);
        this.#pending.push(...page.lines);
        isEnd = page.isEnd;
        if (page.lines.length === 0) break;
      }
    }
    if (eventId !== undefined && !isThere()) return;
    while (this.#pending.length > 0) {
      const line = this.#pending.shift();
      if (!line) break;
      this.#add(line.json, line.number);
      this.#head = line.number;
      // Views close requests then. Those of a session that is parked stay open.
      if (CLOSING.test(line.json)) for (const json of this.#repeated()) this.#add(json, undefined);
      if (eventId !== undefined && idOf(line.json) === eventId) break;
    }
  }

  #add(json: string, number: number | undefined): void {
    if (this.#readers.size === 0) return;
    this.#batch.push({ json, number });
    if (this.#batch.length > MAX_WAITING) {
      const ephemeral = this.#batch.findIndex((entry) => entry.number === undefined);
      if (ephemeral !== -1) this.#batch.splice(ephemeral, 1);
    }
    this.#timer ??= setTimeout(() => this.#then(() => this.#flush()), BATCH_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    const texts = batch.map(({ json }) => json);
    const last = batch.findLast(({ number }) => number !== undefined)?.number ?? this.#head;
    const first = batch.find(({ number }) => number !== undefined)?.number;
    for (const reader of this.#readers) {
      const isAhead = first !== undefined && reader.position >= first;
      const own = isAhead
        ? batch.filter(({ number }) => number === undefined || number > reader.position).map(({ json }) => json)
        : texts;
      reader.position = Math.max(reader.position, last);
      if (own.length === 0) continue;
      const taken = reader.take(own, reader.position);
      if (taken !== true) void this.#fallBehind(reader, taken);
    }
  }

  /** A reader that is slow catches up from the file when it reads again; events that are not stored are left out for it. */
  async #fallBehind(reader: FeedReader, taken: false | Promise<boolean>): Promise<void> {
    this.#readers.delete(reader);
    if (taken === false) return;
    this.#catchingUp.add(reader);
    if (!(await taken) || !this.#catchingUp.has(reader)) this.#catchingUp.delete(reader);
    else await this.#catchUp(reader);
  }
}

/** The type stands before the data. */
const CLOSING = /^\{[^{]*"type":"(?:session\.shutdown|permission\.completed)"/;

/** Every stored event begins with its id. */
function idOf(json: string): string {
  const start = '{"id":"';
  if (json.startsWith(start)) return json.slice(start.length, json.indexOf('"', start.length));
  return (JSON.parse(json) as { id?: string }).id ?? "";
}
