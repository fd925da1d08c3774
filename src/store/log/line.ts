/**
 * Encodes and decodes one line of a log. A line is the event's JSON with one more member at its end, so every line is
 * still a plain event for grep and jq.
 *
 *   {…event…,"troupe":{"seq":7,"prev":"1c291ca3","crc":"0a5f3c11"}}
 *
 * `crc` covers every byte of the line before `,"crc"`, so each line can be verified alone. `seq` and `prev` (the `crc`
 * of the previous record) tie it to its position.
 */
import { crc32 } from "node:zlib";
import { isObject } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Damage } from "../damage.ts";

export const NEWLINE = 0x0a;
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Identifies the record that the next one follows. */
export interface RecordLink {
  readonly seq: number;
  readonly crc: number;
}
export const noRecord: RecordLink = { seq: 0, crc: 0 };

export interface LogRecord extends RecordLink {
  readonly kind: "record";
  readonly event: SessionEvent;
  readonly prev: number;
}

export type Decoded =
  | LogRecord
  /** Written by another program, without a checksum. */
  | { readonly kind: "plain"; readonly event: SessionEvent }
  | { readonly kind: "bad"; readonly damage: Damage["kind"]; readonly message: string };

export function encodeLine(event: SessionEvent, after: RecordLink): { bytes: Buffer; link: RecordLink } {
  const seq = after.seq + 1;
  const covered = `${JSON.stringify(event).slice(0, -1)},"troupe":{"seq":${seq},"prev":"${hex(after.crc)}"`;
  const crc = crc32(covered);
  const bytes = Buffer.from(`${covered},"crc":"${hex(crc)}"}}\n`);
  if (bytes.length > MAX_LINE_BYTES) {
    throw new TroupeError("storage", `An event of ${bytes.length} bytes is too large for the session log.`, {
      hint: "Write large content to a file, and store its path.",
    });
  }
  return { bytes, link: { seq, crc } };
}

/**
 * Ties a line to another preceding record, in place. Its `seq` must already be `after.seq + 1`. Returns the new link.
 */
export function relinkLine(bytes: Buffer, start: number, trailer: Trailer, after: RecordLink): RecordLink {
  const { seq, covered } = trailer;
  if (trailer.prev === after.crc) return { seq, crc: trailer.crc };
  bytes.write(hex(after.crc), covered - 1 - HEX_DIGITS, "latin1");
  const crc = crc32(bytes.subarray(start, covered));
  bytes.write(hex(crc), covered - 1 + CRC.length, "latin1");
  return { seq, crc };
}

/** Returns a line with the same event as the next record after `after`, with a new number. */
export function renumberedLine(
  bytes: Buffer,
  start: number,
  trailer: Trailer,
  after: RecordLink,
): { bytes: Buffer; link: RecordLink } {
  const seq = after.seq + 1;
  const event = bytes.subarray(start, trailer.start);
  const link = Buffer.from(`,"troupe":{"seq":${seq},"prev":"${hex(after.crc)}"`);
  const crc = crc32(link, crc32(event));
  return { bytes: Buffer.concat([event, link, Buffer.from(`,"crc":"${hex(crc)}"}}\n`)]), link: { seq, crc } };
}

/** Decodes one line, from `start` to the position of its newline. */
export function decodeLine(bytes: Buffer, start = 0, end = bytes.length): Decoded {
  const trailer = parseTrailer(bytes, start, end);
  if (!trailer) return decodePlain(bytes.subarray(start, end));
  const record = decodeRecord(bytes, start, trailer);
  if (record) return record;
  if (bytes.subarray(start, end).includes(0)) return nullBytes;
  const message = `The content of record ${trailer.seq} does not match its checksum.`;
  return { kind: "bad", damage: "checksum", message };
}

/**
 * Finds complete records in a line that is not one: two joined lines, or a line after a torn one or after null bytes.
 * Returns only records that verify, and never one nested in another event.
 */
export function salvage(line: Buffer): { start: number; end: number; record: LogRecord }[] {
  const found: { start: number; end: number; record: LogRecord }[] = [];
  let from = 0;
  let budget = MAX_LINE_BYTES;
  let mark = line.indexOf(SEQ);
  while (mark !== -1 && budget > 0) {
    const close = line.indexOf(END, mark);
    if (close === -1) break;
    const end = close + END.length;
    const trailer = parseTrailer(line, from, end);
    let start = trailer?.start === mark && !isNested(line[end]) ? line.indexOf(OBJECT_START, from) : -1;
    while (trailer && start !== -1 && start < mark && budget > 0) {
      budget -= end - start;
      const record = decodeRecord(line, start, trailer);
      if (record) {
        found.push({ start, end, record });
        from = end;
        break;
      }
      start = line.indexOf(OBJECT_START, start + 1);
    }
    mark = line.indexOf(SEQ, mark + 1);
  }
  return found;
}

/** True for bytes that follow a nested object. They never follow a record. */
const isNested = (next: number | undefined): boolean => next !== undefined && "},]".includes(String.fromCharCode(next));

const SEQ = Buffer.from(`,"troupe":{"seq":`);
const PREV = Buffer.from(`,"prev":"`);
const CRC = Buffer.from(`","crc":"`);
const END = Buffer.from(`"}}`);
const OBJECT_START = Buffer.from(`{"`);
const HEX_DIGITS = 8;
const MAX_SEQ_DIGITS = 15;
const ZERO = 0x30;

export interface Trailer {
  /** The end of the event's own members. */
  readonly start: number;
  /** The end of the bytes that `crc` covers. */
  readonly covered: number;
  readonly seq: number;
  readonly prev: number;
  readonly crc: number;
}

/** Parses the trailer backwards, byte by byte: this runs for every line of every log that is opened. */
export function parseTrailer(bytes: Buffer, start: number, end: number): Trailer | undefined {
  const crcAt = end - END.length - HEX_DIGITS;
  const prevAt = crcAt - CRC.length - HEX_DIGITS;
  const seqEnd = prevAt - PREV.length;
  if (seqEnd - SEQ.length <= start) return undefined;
  if (!isAt(bytes, end - END.length, END) || !isAt(bytes, crcAt - CRC.length, CRC) || !isAt(bytes, seqEnd, PREV)) {
    return undefined;
  }
  let seqAt = seqEnd;
  let seq = 0;
  for (let scale = 1; seqEnd - seqAt < MAX_SEQ_DIGITS && isDigit(bytes[seqAt - 1]); scale *= 10) {
    seqAt--;
    seq += ((bytes[seqAt] ?? ZERO) - ZERO) * scale;
  }
  const crc = parseHex(bytes, crcAt);
  const prev = parseHex(bytes, prevAt);
  const isWhole = seqAt < seqEnd && bytes[seqAt] !== ZERO && isAt(bytes, seqAt - SEQ.length, SEQ);
  if (!isWhole || crc === -1 || prev === -1) return undefined;
  return { start: seqAt - SEQ.length, covered: crcAt - CRC.length + 1, seq, prev, crc };
}

function decodeRecord(bytes: Buffer, start: number, trailer: Trailer): LogRecord | undefined {
  const { seq, prev, crc } = trailer;
  if (crc32(bytes.subarray(start, trailer.covered)) !== crc) return undefined;
  const event = parseObject(`${bytes.toString("utf8", start, trailer.start)}}`);
  return event && { kind: "record", event: event as unknown as SessionEvent, seq, prev, crc };
}

function isAt(bytes: Buffer, at: number, wanted: Buffer): boolean {
  for (let index = 0; index < wanted.length; index++) {
    if (bytes[at + index] !== wanted[index]) return false;
  }
  return true;
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= ZERO + 9;

/** Parses eight lower-case hex digits. Returns -1 if there are none. */
function parseHex(bytes: Buffer, at: number): number {
  let value = 0;
  for (let index = at; index < at + HEX_DIGITS; index++) {
    const byte = bytes[index] ?? 0;
    if (isDigit(byte)) value = value * 16 + byte - ZERO;
    else if (byte >= 0x61 && byte <= 0x66) value = value * 16 + byte - 0x57;
    else return -1;
  }
  return value;
}

const nullBytes: Decoded = {
  kind: "bad",
  damage: "null_bytes",
  message: "The line contains null bytes, as after a power cut.",
};

function decodePlain(line: Buffer): Decoded {
  if (line.includes(0)) return nullBytes;
  if (resemblesTrailer(line)) {
    return { kind: "bad", damage: "checksum", message: "The checksum of the line is damaged." };
  }
  const event = parseObject(line.toString("utf8"));
  if (event === undefined) return { kind: "bad", damage: "not_json", message: "The line is not a JSON object." };
  if (event.troupe !== undefined) {
    return { kind: "bad", damage: "checksum", message: "The line was changed after it was written." };
  }
  if (typeof event.id !== "string" || typeof event.type !== "string" || !isObject(event.data)) {
    return { kind: "bad", damage: "not_json", message: "The line is JSON, but not an event." };
  }
  return { kind: "plain", event: event as unknown as SessionEvent };
}

/** True for a damaged trailer. A few wrong bits must not make our record pass for another program's event. */
function resemblesTrailer(line: Buffer): boolean {
  const frame = `,"prev":"????????","crc":"????????"}}`;
  const first = line.length - frame.length;
  if (first < 0) return false;
  let different = 0;
  for (let index = 0; index < frame.length; index++) {
    const wanted = frame.charCodeAt(index);
    if (wanted !== QUESTION_MARK && wanted !== line[first + index]) different++;
  }
  return different <= 4;
}

const QUESTION_MARK = 0x3f;

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
