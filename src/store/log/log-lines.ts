/**
 * Reads a log line by line while another process may append to it, without a lock. Lines are numbered from 1, as in the
 * file: in an undamaged log the number is the record's `seq`. Events that rewinds took out of view are included.
 */
import { type FileHandle, open } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { errorCode } from "../storage-error.ts";
import { decodeLine, MAX_LINE_BYTES, NEWLINE, parseTrailer } from "./line.ts";

const PIECE_BYTES = 256 * 1024;
/** The offset of every 256th line is stored. */
const LINES_PER_MARK = 256;

export interface LogLine {
  /** Position in the file, from 1. */
  readonly number: number;
  /** The event's JSON, without the record's trailer. */
  readonly json: string;
}

export interface LinePage {
  readonly lines: readonly LogLine[];
  /** Number of the last line that was read, damaged ones included. Continue after it. */
  readonly last: number;
  /** True when there was nothing more to read. An unfinished last line does not count. */
  readonly isEnd: boolean;
}

export class LogLines {
  readonly #path: string;
  /** Offsets of the lines 0, 256, 512, … counted from 0. */
  readonly #marks: number[] = [0];
  /** The end of the last page, so that following the end of a log costs what is new. */
  #recent = { line: 0, offset: 0 };

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the lines after the one with this number: about `maxBytes` of them, and one at least. Damaged ones are left out. */
  async read(after: number, maxBytes = PIECE_BYTES): Promise<LinePage> {
    const file = await open(this.#path, "r").catch((error: unknown) => {
      if (errorCode(error) === "ENOENT") return undefined;
      throw error;
    });
    if (!file) return { lines: [], last: after, isEnd: true };
    try {
      return await this.#read(file, after, maxBytes);
    } finally {
      await file.close();
    }
  }

  async #read(file: FileHandle, after: number, maxBytes: number): Promise<LinePage> {
    let { line, offset } = this.#startFor(after);
    let size = Math.max(maxBytes, PIECE_BYTES);
    for (;;) {
      const bytes = await readPiece(file, offset, size);
      const lines: LogLine[] = [];
      let begin = 0;
      let taken = 0;
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, begin)) {
        line++;
        if (line > after) {
          if (taken >= maxBytes) {
            this.#recent = { line: line - 1, offset: offset + begin };
            return { lines, last: line - 1, isEnd: false };
          }
          taken += end - begin;
          const json = lineJson(bytes, begin, end);
          if (json !== undefined) lines.push({ number: line, json });
        }
        begin = end + 1;
        if (line % LINES_PER_MARK === 0) this.#marks[line / LINES_PER_MARK] = offset + begin;
      }
      const isEnd = bytes.length < size;
      offset += begin;
      this.#recent = { line, offset };
      if (lines.length > 0 || line > after || isEnd) return { lines, last: Math.max(line, after), isEnd };
      // A line that is longer than the piece needs a larger one.
      if (begin === 0) size = Math.min(size * 4, MAX_LINE_BYTES + 1);
    }
  }

  #startFor(after: number): { line: number; offset: number } {
    if (this.#recent.line <= after && this.#recent.line > after - LINES_PER_MARK) return this.#recent;
    let mark = Math.min(Math.floor(after / LINES_PER_MARK), this.#marks.length - 1);
    while (this.#marks[mark] === undefined) mark--;
    return { line: mark * LINES_PER_MARK, offset: this.#marks[mark] ?? 0 };
  }
}

async function readPiece(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(bytes, filled, size - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/** Returns the event's JSON in a line; undefined for a damaged one. A record is verified by its checksum and not parsed. */
export function lineJson(bytes: Buffer, start = 0, end = bytes.length): string | undefined {
  const trailer = parseTrailer(bytes, start, end);
  if (trailer) {
    const isWhole = crc32(bytes.subarray(start, trailer.covered)) === trailer.crc;
    return isWhole ? `${bytes.toString("utf8", start, trailer.start)}}` : undefined;
  }
  const decoded = decodeLine(bytes, start, end);
  return decoded.kind === "plain" ? JSON.stringify(decoded.event) : undefined;
}
