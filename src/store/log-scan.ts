/**
 * Reads a log line by line and parses only the events that the caller asks for. Counting and copying a long log costs
 * about as much as reading its bytes. Works only for logs with one record per line, in order, without damage and
 * without rewinds. Throws `IrregularLog` for all others.
 */
import { open, stat } from "node:fs/promises";
import { crc32 } from "node:zlib";
import type { SessionEvent } from "../protocol/event.ts";
import {
  decodeLine,
  MAX_LINE_BYTES,
  NEWLINE,
  noRecord,
  parseTrailer,
  type RecordLink,
  type Trailer,
} from "./log/line.ts";

const PIECE_BYTES = 1024 * 1024;

/** Thrown for a log that must be read event by event. */
export class IrregularLog extends Error {}

/** One line. Valid until the next one is read. */
export interface ScannedLine {
  readonly bytes: Buffer;
  readonly start: number;
  /** The position of its newline. */
  readonly end: number;
  readonly trailer: Trailer;
  readonly type: string;
}

/** A part of the log. The caller may change the bytes. */
export interface ScannedPiece {
  /** All complete lines, including their newlines. */
  readonly bytes: Buffer;
  lines(): Iterable<ScannedLine>;
}

/**
 * Yields the complete lines that the file has when the scan starts. Each piece is valid until the next one is
 * requested. The file is open only during a read, because a caller may never request the next piece.
 */
export async function* scanPieces(path: string): AsyncGenerator<ScannedPiece> {
  const { size } = await stat(path);
  let buffer: Buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size + 1));
  let [offset, filled] = [0, 0];
  let last = noRecord;
  const onLine = (line: RecordLink): void => {
    last = line;
  };
  while (offset < size) {
    const wanted = Math.min(buffer.length - filled, size - offset);
    const bytesRead = await readAt(path, buffer.subarray(filled, filled + wanted), offset);
    if (bytesRead === 0) break;
    offset += bytesRead;
    filled += bytesRead;
    const complete = buffer.lastIndexOf(NEWLINE, filled - 1) + 1;
    if (complete > 0) {
      const bytes = buffer.subarray(0, complete);
      const after = last;
      yield { bytes, lines: () => linesOf(bytes, after, onLine) };
      buffer.copyWithin(0, complete, filled);
      filled -= complete;
    }
    if (filled < buffer.length) continue;
    if (filled > MAX_LINE_BYTES) throw new IrregularLog();
    const larger = Buffer.allocUnsafe(buffer.length * 2);
    buffer.copy(larger, 0, 0, filled);
    buffer = larger;
  }
  // A last line without its newline may be complete or torn. Only `readLog` can tell.
  if (filled > 0) throw new IrregularLog();
}

async function readAt(path: string, into: Buffer, position: number): Promise<number> {
  const file = await open(path, "r");
  try {
    return (await file.read(into, 0, into.length, position)).bytesRead;
  } finally {
    await file.close();
  }
}

function* linesOf(bytes: Buffer, before: RecordLink, onLine: (line: RecordLink) => void): Generator<ScannedLine> {
  let last = before;
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, start);
    const trailer = parseTrailer(bytes, start, end);
    if (!trailer || trailer.seq !== last.seq + 1 || trailer.prev !== last.crc) throw new IrregularLog();
    if (crc32(bytes.subarray(start, trailer.covered)) !== trailer.crc) throw new IrregularLog();
    last = { seq: trailer.seq, crc: trailer.crc };
    onLine(last);
    const type = typeOf(bytes, start, trailer.start);
    if (type === REWIND) throw new IrregularLog();
    yield { bytes, start, end, trailer, type };
    start = end + 1;
  }
}

const REWIND = "troupe.rewound";
const TYPE = Buffer.from(`,"type":"`);
const QUOTE = 0x22;
const BRACE = 0x7b;

/**
 * Returns the event's type without parsing. The type precedes the data. Throws if an object precedes it, as that could
 * contain another type.
 */
function typeOf(bytes: Buffer, start: number, end: number): string {
  const at = bytes.indexOf(TYPE, start);
  if (at === -1 || at > end || bytes.indexOf(BRACE, start + 1) < at) throw new IrregularLog();
  const from = at + TYPE.length;
  return bytes.toString("latin1", from, bytes.indexOf(QUOTE, from));
}

export function eventIn({ bytes, start, end }: ScannedLine): SessionEvent {
  const decoded = decodeLine(bytes, start, end);
  if (decoded.kind !== "record") throw new IrregularLog();
  return decoded.event;
}

/** Returns the id of the line's event, also after its trailer was changed. */
export function idIn({ bytes, start, trailer }: ScannedLine): string {
  return (JSON.parse(`${bytes.toString("utf8", start, trailer.start)}}`) as SessionEvent).id;
}

function hasId({ bytes, start }: ScannedLine, idStart: Buffer): boolean {
  return bytes.compare(idStart, 0, idStart.length, start, start + idStart.length) === 0;
}

/** Returns the bytes that begin every line whose event has this id. */
const idStartOf = (eventId: string): Buffer => Buffer.from(`{"id":${JSON.stringify(eventId)},`);

export interface Scan {
  /** The event types to parse. Other events are only counted. */
  readonly types: ReadonlySet<string>;
  /** The scan ends before this event. Without it, all events are counted. */
  readonly toEventId?: string;
  /** Starts a pass over the log and returns the callback for its events. An irregular log takes a second pass. */
  begin(): (event: SessionEvent) => void;
}

/** `isFound` is false when `toEventId` is not in view. */
export interface Scanned {
  readonly count: number;
  readonly isFound: boolean;
}

/** Scans a regular log. Throws `IrregularLog`, possibly after some events. */
export async function scanLog(path: string, { types, toEventId, begin }: Scan): Promise<Scanned> {
  const onEvent = begin();
  const until = toEventId === undefined ? undefined : idStartOf(toEventId);
  let count = 0;
  let isFound = false;
  for await (const piece of scanPieces(path)) {
    for (const line of piece.lines()) {
      isFound ||= until !== undefined && hasId(line, until);
      // Keeps scanning after the event: a rewind further on makes the log irregular.
      if (isFound) continue;
      count++;
      if (types.has(line.type)) onEvent(eventIn(line));
    }
  }
  return { count, isFound: isFound || until === undefined };
}

/** Scans any log, from its parsed events. */
export async function scanEvents(
  events: Iterable<SessionEvent> | AsyncIterable<SessionEvent>,
  { types, toEventId, begin }: Scan,
): Promise<Scanned> {
  const onEvent = begin();
  let count = 0;
  for await (const event of events) {
    if (event.id === toEventId) return { count, isFound: true };
    count++;
    if (types.has(event.type)) onEvent(event);
  }
  return { count, isFound: toEventId === undefined };
}
