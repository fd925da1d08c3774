/** Reads a log, verifies every line and reports damage. */

import { open } from "node:fs/promises";
import { plural } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Damage } from "../damage.ts";
import { decodeLine, type LogRecord, MAX_LINE_BYTES, NEWLINE, noRecord, type RecordLink, salvage } from "./line.ts";

export interface LogContent {
  readonly events: readonly SessionEvent[];
  /** Damage in complete lines. `tail` describes the bytes after the last newline. */
  readonly damage: readonly Damage[];
  readonly last: RecordLink;
  /** The end of the usable bytes. The bytes after it are the torn part of `tail`. */
  readonly length: number;
  readonly fileSize: number;
  /** Number of lines up to `length`, including those before the position where reading started. */
  readonly lines: number;
  /** True when a record's number is at or below those before the start position: the whole log must be read. */
  readonly refersBack: boolean;
  /** True when damage follows the last record, so the next record may skip numbers. */
  readonly endsDamaged: boolean;
  readonly tail: Tail;
}

/** A position between two lines of a log. */
export interface LogPosition {
  readonly offset: number;
  /** Number of lines before the position. */
  readonly lines: number;
  /** The last record before the position. */
  readonly last: RecordLink;
  /** True when there is damage between that record and the position. */
  readonly afterDamage: boolean;
}

export interface ReadOptions {
  readonly chunkBytes?: number;
  readonly maxLineBytes?: number;
  /** Starts reading here (default: the beginning of the file). */
  readonly from?: LogPosition;
  /** Receives each event. The result's `events` is then empty. */
  readonly onEvent?: (event: SessionEvent) => void;
}

type Tail =
  | { readonly kind: "clean" }
  /** The last line is complete except for its newline. */
  | { readonly kind: "open" }
  /** `newline` is `missing` when a complete record without newline remains after the torn bytes are cut off. */
  | { readonly kind: "torn"; readonly newline: "there" | "missing"; readonly damage: Damage };

const CHUNK_BYTES = 1024 * 1024;

/** Reads a log in one pass with one buffer. Damage loses only the damaged record. */
export async function readLog(path: string, options: ReadOptions = {}): Promise<LogContent> {
  const maxLine = options.maxLineBytes ?? MAX_LINE_BYTES;
  const collect = new LogCollector(options);
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    let buffer: Buffer = Buffer.allocUnsafe(options.chunkBytes ?? Math.min(CHUNK_BYTES, size + 1));
    let filled = 0;
    let searched = 0;
    /** File position of the buffer's first byte. */
    let base = options.from?.offset ?? 0;
    /** The start of an over-long line while its bytes are skipped. */
    let skippedFrom: number | undefined;
    for (;;) {
      const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, base + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
      let start = 0;
      const bytes = buffer.subarray(0, filled);
      let newline = bytes.indexOf(NEWLINE, searched);
      while (newline !== -1) {
        const lineStart = skippedFrom ?? base + start;
        const length = base + newline - lineStart;
        if (length > maxLine) collect.tooLong(lineStart, length, maxLine);
        else collect.line({ bytes, start, end: newline, offset: lineStart });
        skippedFrom = undefined;
        start = newline + 1;
        newline = bytes.indexOf(NEWLINE, start);
      }
      if (skippedFrom === undefined && filled - start > maxLine) skippedFrom = base + start;
      if (skippedFrom !== undefined) start = filled;
      buffer.copyWithin(0, start, filled);
      base += start;
      filled -= start;
      searched = filled;
      if (filled === buffer.length) buffer = Buffer.concat([buffer], buffer.length * 2);
    }
    return collect.finish(buffer.subarray(0, filled), base, skippedFrom);
  } finally {
    await file.close();
  }
}

/** Parses a log that is in memory. */
export function parseLog(bytes: Buffer, maxLine = MAX_LINE_BYTES): LogContent {
  const collect = new LogCollector();
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    if (end - start > maxLine) collect.tooLong(start, end - start, maxLine);
    else collect.line({ bytes, start, end, offset: start });
    start = end + 1;
  }
  const isTooLong = bytes.length - start > maxLine;
  return isTooLong
    ? collect.finish(nothing, bytes.length, start)
    : collect.finish(bytes.subarray(start), start, undefined);
}

const nothing = Buffer.alloc(0);

/** A line without its newline, in a buffer and at `offset` of the file. */
interface Piece {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly offset: number;
}

/** Collects the events and the damage of a log, line by line. */
class LogCollector {
  readonly #events: SessionEvent[] = [];
  readonly #take: (event: SessionEvent) => unknown;
  readonly #damage: Damage[] = [];
  readonly #firstSeq: number;
  /** Checksums by record number, counted from the start position. */
  readonly #checksums: number[] = [];
  #last: RecordLink;
  #line: number;
  #refersBack = false;
  /** Suppresses the report of a gap right after reported damage. */
  #damageBefore: boolean;

  constructor({ from, onEvent }: Pick<ReadOptions, "from" | "onEvent"> = {}) {
    this.#take = onEvent ?? ((event) => this.#events.push(event));
    this.#firstSeq = from?.last.seq ?? 0;
    this.#last = from?.last ?? noRecord;
    this.#line = from?.lines ?? 0;
    this.#damageBefore = from?.afterDamage ?? false;
  }

  line(piece: Piece): void {
    this.#line++;
    this.#readLine(piece);
  }

  tooLong(offset: number, bytes: number, limit: number): void {
    this.#line++;
    const message = `The line is longer than ${limit} bytes. It is not used.`;
    this.#damage.push({ kind: "too_long", line: this.#line, offset, bytes, message });
    this.#damageBefore = true;
  }

  /** Handles the bytes after the last newline. Reads them as they will be after the repair cuts off the torn part. */
  finish(rest: Buffer, base: number, skippedFrom: number | undefined): LogContent {
    const fileSize = base + rest.length;
    const complete = this.#line;
    this.#line++;
    const line = this.#line;
    if (skippedFrom !== undefined) {
      const at = { line, offset: skippedFrom, bytes: fileSize - skippedFrom };
      const tail = torn({ kind: "too_long", ...at }, "there");
      return this.#content({ length: skippedFrom, fileSize, lines: complete, tail });
    }
    if (rest.length === 0) return this.#content({ length: base, fileSize, lines: complete, tail: { kind: "clean" } });
    const decoded = decodeLine(rest);
    const kept = decoded.kind === "bad" ? (salvage(rest).at(-1)?.end ?? 0) : rest.length;
    this.#readLine({ bytes: rest, start: 0, end: kept, offset: base });
    if (kept === rest.length) {
      return this.#content({ length: fileSize, fileSize, lines: line, tail: { kind: "open" } });
    }
    const kind = rest.subarray(kept).includes(0) ? "null_bytes" : "torn_tail";
    const at = { line, offset: base + kept, bytes: rest.length - kept };
    const tail = torn({ kind, ...at }, kept > 0 ? "missing" : "there");
    return this.#content({ length: base + kept, fileSize, lines: kept > 0 ? line : complete, tail });
  }

  #content(end: Pick<LogContent, "length" | "fileSize" | "lines" | "tail">): LogContent {
    return {
      events: this.#events,
      damage: this.#damage,
      last: this.#last,
      refersBack: this.#refersBack,
      endsDamaged: this.#damageBefore,
      ...end,
    };
  }

  #readLine({ bytes, start, end, offset }: Piece): void {
    if (start === end) return;
    const decoded = decodeLine(bytes, start, end);
    if (decoded.kind === "record") this.#accept(decoded, offset, end - start);
    else if (decoded.kind === "plain") this.#acceptPlain(decoded.event, offset, end - start);
    else this.#loseLine(bytes.subarray(start, end), offset, decoded);
  }

  #accept(record: LogRecord, offset: number, bytes: number): void {
    const { seq, crc } = record;
    const last = this.#last;
    if (seq <= last.seq) {
      this.#acceptEarlier(record, offset, bytes);
      return;
    }
    const follows = seq === last.seq + 1 && record.prev === last.crc;
    if (!follows && !this.#damageBefore) this.#outOfSequence(gap(last.seq, seq), offset, bytes);
    this.#damageBefore = false;
    this.#take(record.event);
    this.#checksums[seq - this.#firstSeq] = crc;
    this.#last = { seq, crc };
  }

  /** Accepts a record whose number is not above the last one, unless it is a copy of one already read. */
  #acceptEarlier({ seq, crc, event }: LogRecord, offset: number, bytes: number): void {
    if (seq <= this.#firstSeq) this.#refersBack = true;
    const isRepeated = this.#checksums[seq - this.#firstSeq] === crc;
    this.#outOfSequence(isRepeated ? repeats(seq) : outOfOrder(seq), offset, bytes);
    if (!isRepeated) this.#take(event);
  }

  #outOfSequence(message: string, offset: number, bytes: number): void {
    this.#damage.push({ kind: "sequence", line: this.#line, offset, bytes, message });
  }

  #acceptPlain(event: SessionEvent, offset: number, bytes: number): void {
    this.#take(event);
    if (this.#last.seq === 0) return;
    this.#damage.push({ kind: "checksum", line: this.#line, offset, bytes, message: WITHOUT_CHECKSUM });
  }

  #loseLine(bytes: Buffer, offset: number, bad: { damage: Damage["kind"]; message: string }): void {
    const parts = salvage(bytes);
    const kind = parts.length > 0 && bad.damage !== "null_bytes" ? "joined" : bad.damage;
    const message = `${bad.message} ${parts.length === 0 ? "It is not used." : wholeRecords(parts.length)}`;
    this.#damage.push({ kind, line: this.#line, offset, bytes: bytes.length, message });
    this.#damageBefore = true;
    for (const part of parts) this.#accept(part.record, offset + part.start, part.end - part.start);
    this.#damageBefore = true;
  }
}

function torn(position: Omit<Damage, "message">, newline: "there" | "missing"): Tail {
  const message = `The last ${plural(position.bytes, "byte")} of the log were not written completely and are not used.`;
  return { kind: "torn", newline, damage: { ...position, message } };
}

const WITHOUT_CHECKSUM = "The line has no checksum: another program wrote it. It is used as it is.";
const repeats = (seq: number): string => `Record ${seq} occurs twice. The second copy is not used.`;
const outOfOrder = (seq: number): string =>
  `Record ${seq} comes after a later one: two programs may have written at the same time. It is used.`;
const wholeRecords = (kept: number): string =>
  `${plural(kept, "whole record")} found in it ${kept === 1 ? "is" : "are"} used.`;
function gap(before: number, seq: number): string {
  const missing = seq - before - 1;
  if (missing === 0) return `Record ${seq} does not follow from the one before it. It is used.`;
  return missing === 1 ? `Record ${before + 1} is missing.` : `Records ${before + 1} to ${seq - 1} are missing.`;
}
