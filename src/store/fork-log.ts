/**
 * The events of a fork: the source's events up to a position, with the fork's changes, followed by the fork's own
 * events.
 */
import { crc32 } from "node:zlib";
import type { SessionEvent } from "../protocol/event.ts";
import { encodeLine, noRecord, type RecordLink, relinkLine, renumberedLine } from "./log/line.ts";
import { eventIn, idIn, type ScannedLine, type ScannedPiece, scanPieces } from "./log-scan.ts";

export interface ForkedEvents {
  /** Number of events in view, from the first, that are copied or dropped. */
  readonly count: number;
  /** The types that are passed to `change`. Events of all other types are copied unchanged. */
  readonly changedTypes: ReadonlySet<string>;
  /** Returns the event for the fork, or `undefined` to drop it. */
  change(event: SessionEvent): SessionEvent | undefined;
  /** The fork's own events. They follow the copied ones. */
  readonly added: readonly SessionEvent[];
}

/** The folders of both sessions. Paths of `source` in events become paths of `target`. */
export interface ForkFolders {
  readonly source: string;
  readonly target: string;
}

/** The end of the fork's log. */
export interface ForkEnd {
  readonly length: number;
  readonly checksum: number;
  readonly last: RecordLink;
}

/** Applies the changes to one event at a time and updates the parent ids. */
export class ForkedChain {
  readonly #changes: Pick<ForkedEvents, "changedTypes" | "change">;
  readonly #old: string;
  readonly #own: string;
  /** The parent id for the next event, set after an event was dropped. */
  #parentId: string | null | undefined;

  constructor(changes: Pick<ForkedEvents, "changedTypes" | "change">, { source, target }: ForkFolders) {
    this.#changes = changes;
    [this.#old, this.#own] = [source, target].map((path) => JSON.stringify(path).slice(1, -1)) as [string, string];
  }

  /** Text that occurs in the JSON of every event that names the source folder. */
  get needle(): string {
    return this.#old;
  }

  /** True when the next event must pass through `next`, because the event before it was dropped. */
  get isBroken(): boolean {
    return this.#parentId !== undefined;
  }

  isChanged(type: string): boolean {
    return this.#changes.changedTypes.has(type);
  }

  /** Returns the event for the fork, or `undefined` if it is dropped. */
  next(event: SessionEvent): SessionEvent | undefined {
    const changed = this.isChanged(event.type) ? this.#changes.change(event) : event;
    if (!changed) {
      this.#parentId ??= event.parentId;
      return undefined;
    }
    const chained = this.#parentId === undefined ? changed : { ...changed, parentId: this.#parentId };
    this.#parentId = undefined;
    const text = JSON.stringify(chained);
    return text.includes(this.#old) ? (JSON.parse(text.replaceAll(this.#old, this.#own)) as SessionEvent) : chained;
  }
}

/** Returns all events of a fork in memory. */
export function forkedEvents(view: readonly SessionEvent[], fork: ForkedEvents): SessionEvent[] {
  const kept = view.slice(0, fork.count).flatMap((event) => {
    return fork.changedTypes.has(event.type) ? (fork.change(event) ?? []) : event;
  });
  return chainEvents([...kept, ...fork.added], null);
}

/** Makes each event the parent of the next one. The first gets `before` as parent. */
export function chainEvents(events: readonly SessionEvent[], before: string | null): SessionEvent[] {
  return events.map((event, index) => ({ ...event, parentId: events[index - 1]?.id ?? before }));
}

const OUTPUT_BYTES = 1024 * 1024;

/** Yields the fork's lines from parsed events. Used for logs with damage or rewinds. */
export async function* linesFromEvents(
  events: Iterable<SessionEvent> | AsyncIterable<SessionEvent>,
  fork: ForkedEvents,
  folders: ForkFolders,
): AsyncGenerator<Buffer> {
  const chain = new ForkedChain(fork, folders);
  let [last, left, parentId] = [noRecord, fork.count, null as string | null];
  let [pieces, bytes]: [Buffer[], number] = [[], 0];
  const add = (event: SessionEvent): void => {
    // Set anew, because rewinds leave gaps in the source's parent chain.
    const line = encodeLine({ ...event, parentId }, last);
    [last, parentId] = [line.link, event.id];
    pieces.push(line.bytes);
    bytes += line.bytes.length;
  };
  for await (const event of events) {
    if (left-- === 0) break;
    const own = chain.next(event);
    if (own) add(own);
    if (bytes < OUTPUT_BYTES) continue;
    yield Buffer.concat(pieces);
    [pieces, bytes] = [[], 0];
  }
  for (const event of fork.added) add(event);
  yield Buffer.concat(pieces);
}

/**
 * Yields the fork's lines from the bytes of the source, and parses only events that change. Calls `onEnd` before the
 * last piece. Throws `IrregularLog`, possibly after some pieces.
 */
export async function* linesFromBytes(
  path: string,
  fork: ForkedEvents,
  how: { readonly folders: ForkFolders; onEnd(end: ForkEnd): void },
): AsyncGenerator<Buffer> {
  const copy = new ByteCopy(fork, how.folders);
  let [length, checksum] = [0, 0];
  const counted = (piece: Buffer): Buffer => {
    length += piece.length;
    checksum = crc32(piece, checksum);
    return piece;
  };
  for await (const piece of scanPieces(path)) {
    yield counted(copy.piece(piece));
  }
  const end = counted(copy.end(fork.added));
  how.onEnd({ length, checksum, last: copy.last });
  yield end;
}

class ByteCopy {
  readonly #chain: ForkedChain;
  readonly #needle: Buffer;
  #left: number;
  #lastId: string | null = null;
  #last: RecordLink = noRecord;

  constructor(fork: ForkedEvents, folders: ForkFolders) {
    this.#chain = new ForkedChain(fork, folders);
    this.#needle = Buffer.from(this.#chain.needle);
    this.#left = fork.count;
  }

  get last(): RecordLink {
    return this.#last;
  }

  /** Returns the piece's lines for the fork. Lines that only get another predecessor are changed in place. */
  piece(piece: ScannedPiece): Buffer {
    const { bytes } = piece;
    const namesFolder = bytes.includes(this.#needle);
    const parts: Buffer[] = [];
    /** Start and end of the current run of lines that stay in place. */
    let [from, to] = [0, 0];
    let unread: ScannedLine | undefined;
    for (const line of piece.lines()) {
      // Keeps scanning after the last copied event: a rewind further on makes the log irregular.
      if (this.#left === 0) continue;
      this.#left--;
      const { start, end, trailer, type } = line;
      const isNamed = namesFolder && bytes.subarray(start, end).includes(this.#needle);
      const isSame = !isNamed && !this.#chain.isBroken && !this.#chain.isChanged(type);
      if (isSame) unread = line;
      if (isSame && trailer.seq === this.#last.seq + 1) {
        this.#last = relinkLine(bytes, start, trailer, this.#last);
        to = end + 1;
        continue;
      }
      if (to > from) parts.push(bytes.subarray(from, to));
      [from, to] = [end + 1, end + 1];
      const own = isSame ? renumberedLine(bytes, start, trailer, this.#last) : this.#changed(line);
      if (!own) continue;
      this.#last = own.link;
      parts.push(own.bytes);
      if (!isSame) unread = undefined;
    }
    if (to > from) parts.push(bytes.subarray(from, to));
    if (unread) this.#lastId = idIn(unread);
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  #changed(line: ScannedLine): ReturnType<typeof encodeLine> | undefined {
    const event = this.#chain.next(eventIn(line));
    if (!event) return undefined;
    this.#lastId = event.id;
    return encodeLine(event, this.#last);
  }

  end(added: readonly SessionEvent[]): Buffer {
    const lines = chainEvents(added, this.#lastId).map((event) => {
      const { bytes, link } = encodeLine(event, this.#last);
      this.#last = link;
      return bytes;
    });
    return Buffer.concat(lines);
  }
}
