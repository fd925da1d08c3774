/**
 * Reads a log line by line and parses only the events that the caller asks for: counting and copying a long log costs
 * about what reading its bytes costs. Works for logs that hold one record per line, in order, without damage and
 * without rewinds; `IrregularLog` is thrown for all others.
 */
import { open, stat } from "node:fs/promises";
import { crc32 } from "node:zlib";
import type { SessionEvent } from "../protocol/event.ts";
import { decodeLine, type Link, MAX_LINE_BYTES, NEWLINE, noRecord, parseTrailer, type Trailer } from "./log/line.ts";

const PIECE_BYTES = 1024 * 1024;

/** The log has to be read event by event. */
export class IrregularLog extends Error {}

/** One line, valid until the next one is read. */
export interface ScannedLine {
  readonly bytes: Buffer;
  readonly start: number;
  /** The position of its newline. */
  readonly end: number;
  readonly trailer: Trailer;
  readonly type: string;
}

/** Lines of a part of the log, and the bytes they stand in. The caller may change the bytes. */
export interface ScannedPiece {
  /** All complete lines, with their newlines. */
  readonly bytes: Buffer;
  lines(): Iterable<ScannedLine>;
}

/**
 * Reads the complete lines that are in the file when it is first opened. Each piece is valid until the next one is asked
 * for. The file is open only while a piece is read, as a caller may never ask for the next one.
 */
export async function* scanPieces(path: string): AsyncGenerator<ScannedPiece> {
  const { size } = await stat(path);
  let buffer: Buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size + 1));
  let [offset, filled] = [0, 0];
  let last = noRecord;
  const onLine = (line: Link): void => {
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
  // A last line without its newline is whole or torn: only the reader of damaged logs can tell.
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

function* linesOf(bytes: Buffer, before: Link, onLine: (line: Link) => void): Generator<ScannedLine> {
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

/** The type stands before the data. No object may stand before it, as that could hold another type. */
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

/** The id of the event in the line, also after its trailer was changed. */
export function idIn({ bytes, start, trailer }: ScannedLine): string {
  return (JSON.parse(`${bytes.toString("utf8", start, trailer.start)}}`) as SessionEvent).id;
}

/** True when the event in the line has this id. */
function hasId({ bytes, start }: ScannedLine, idStart: Buffer): boolean {
  return bytes.compare(idStart, 0, idStart.length, start, start + idStart.length) === 0;
}

/** The beginning of every line whose event has this id. */
const idStartOf = (eventId: string): Buffer => Buffer.from(`{"id":${JSON.stringify(eventId)},`);

export interface Scan {
  /** The types of events to parse; the others are only counted. */
  readonly types: ReadonlySet<string>;
  /** The scan ends before this event; all events are counted without it. */
  readonly toEventId?: string;
  /** Starts a pass over the log; what it returns gets the events. A log that turns out to be irregular takes a second pass. */
  begin(): (event: SessionEvent) => void;
}

/** `isFound`: false when there is no event `toEventId` in view. */
export interface Scanned {
  readonly count: number;
  readonly isFound: boolean;
}

/** Throws `IrregularLog`, possibly after some events. */
export async function scanLog(path: string, { types, toEventId, begin }: Scan): Promise<Scanned> {
  const onEvent = begin();
  const until = toEventId === undefined ? undefined : idStartOf(toEventId);
  let count = 0;
  let isFound = false;
  for await (const piece of scanPieces(path)) {
    for (const line of piece.lines()) {
      isFound ||= until !== undefined && hasId(line, until);
      // The rest is read too: a rewind in it would change what is in view before the place.
      if (isFound) continue;
      count++;
      if (types.has(line.type)) onEvent(eventIn(line));
    }
  }
  return { count, isFound: isFound || until === undefined };
}

/** The same for any log, event by event. */
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
