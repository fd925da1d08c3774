/** The events of a fork: those of its source up to a place, changed where the fork differs, then its own. */
import { crc32 } from "node:zlib";
import type { SessionEvent } from "../protocol/event.ts";
import { encodeLine, type Link, noRecord, relinkLine, renumberedLine } from "./log/line.ts";
import { eventIn, idIn, type ScannedLine, type ScannedPiece, scanPieces } from "./log-scan.ts";

export interface ForkedEvents {
  /** Number of events in view that are copied or left out, from the first on. */
  readonly count: number;
  /** The types that `change` looks at; events of all other types are copied as they are. */
  readonly changedTypes: ReadonlySet<string>;
  /** The event in the fork; undefined leaves it out. */
  change(event: SessionEvent): SessionEvent | undefined;
  /** The fork's own events, after the copied ones. */
  readonly added: readonly SessionEvent[];
}

/** The folders of both sessions: events that name the old one name the new one in the fork. */
export interface ForkFolders {
  readonly source: string;
  readonly target: string;
}

/** Where the log of the fork ends. */
export interface ForkEnd {
  readonly length: number;
  readonly checksum: number;
  readonly last: Link;
}

/** Applies the changes to events one by one and chains them. */
export class ForkedChain {
  readonly #changes: Pick<ForkedEvents, "changedTypes" | "change">;
  readonly #old: string;
  readonly #own: string;
  /** The last copied event, once another one was left out: it is the parent of the next. */
  #parentId: string | null | undefined;

  constructor(changes: Pick<ForkedEvents, "changedTypes" | "change">, { source, target }: ForkFolders) {
    this.#changes = changes;
    [this.#old, this.#own] = [source, target].map((path) => JSON.stringify(path).slice(1, -1)) as [string, string];
  }

  /** A part of the JSON of all events that are changed by their content. */
  get needle(): string {
    return this.#old;
  }

  /** True when the next event must pass through `next`, whatever it is. */
  get isBroken(): boolean {
    return this.#parentId !== undefined;
  }

  isChanged(type: string): boolean {
    return this.#changes.changedTypes.has(type);
  }

  /** The event as the fork has it; undefined when it is left out. */
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

/** All events of a fork that is held in memory. */
export function forkedEvents(view: readonly SessionEvent[], fork: ForkedEvents): SessionEvent[] {
  const kept = view.slice(0, fork.count).flatMap((event) => {
    return fork.changedTypes.has(event.type) ? (fork.change(event) ?? []) : event;
  });
  return chained([...kept, ...fork.added], null);
}

/** Each event is the parent of the next one. */
export function chained(events: readonly SessionEvent[], before: string | null): SessionEvent[] {
  return events.map((event, index) => ({ ...event, parentId: events[index - 1]?.id ?? before }));
}

const OUTPUT_BYTES = 1024 * 1024;

/** Lines of a fork from events that were parsed: for logs that are damaged or were rewound. */
export async function* linesFromEvents(
  events: Iterable<SessionEvent> | AsyncIterable<SessionEvent>,
  fork: ForkedEvents,
  folders: ForkFolders,
): AsyncGenerator<Buffer> {
  const chain = new ForkedChain(fork, folders);
  let [last, left, parentId] = [noRecord, fork.count, null as string | null];
  let [pieces, bytes]: [Buffer[], number] = [[], 0];
  const add = (event: SessionEvent): void => {
    // Rewinds leave gaps in the chain of the source.
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
 * Lines of a fork from the bytes of the source. Only events that change are parsed. Throws `IrregularLog`, possibly after
 * some pieces. `onEnd` is called before the last piece.
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
  #last: Link = noRecord;

  constructor(fork: ForkedEvents, folders: ForkFolders) {
    this.#chain = new ForkedChain(fork, folders);
    this.#needle = Buffer.from(this.#chain.needle);
    this.#left = fork.count;
  }

  get last(): Link {
    return this.#last;
  }

  /** The lines of the piece in the fork. Lines that only get another predecessor are changed where they are. */
  piece(piece: ScannedPiece): Buffer {
    const { bytes } = piece;
    const namesFolder = bytes.includes(this.#needle);
    const parts: Buffer[] = [];
    /** Where the run of lines begins and ends that stay where they are. */
    let [from, to] = [0, 0];
    let unread: ScannedLine | undefined;
    for (const line of piece.lines()) {
      // The rest is read too: a rewind in it would change what is in view before the place.
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
    const lines = chained(added, this.#lastId).map((event) => {
      const { bytes, link } = encodeLine(event, this.#last);
      this.#last = link;
      return bytes;
    });
    return Buffer.concat(lines);
  }
}
