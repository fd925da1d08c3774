/** Reads ranges of a log by the position of events in view, without parsing earlier events. */

import { type FileHandle, open } from "node:fs/promises";
import { defined } from "../../lib/defined.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Damage } from "../damage.ts";
import { errorCode } from "../storage-error.ts";
import { decodeLine, NEWLINE } from "./line.ts";
import { readLog } from "./read-log.ts";
import { visibleEvents } from "./rewound.ts";

const PIECE_BYTES = 1024 * 1024;
/** The offset of every 256th line is stored. */
const LINES_PER_MARK = 256;
const PAGE_EVENTS = 2 * LINES_PER_MARK;
const REWIND = Buffer.from(`"type":"troupe.rewound"`);

/** Lines of the file that are in view, from `from` up to but excluding `to`. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Reads pages of a log. The first page costs a search for line ends; later pages cost what they contain. Relies on one
 * event per line, as in an undamaged log. Other logs are read as a whole.
 */
export class LogPages {
  readonly #path: string;
  /** Offsets of lines 0, 256, 512, … */
  readonly #marks: number[] = [0];
  #lines = 0;
  /** The position at which the search for line ends continues. */
  #offset = 0;
  /** The end of the last complete line. */
  #lineEnd = 0;
  /** The last bytes before `#offset`, which may be the beginning of a rewind's type. */
  #overlap: Buffer = Buffer.alloc(0);
  #view: readonly Range[] = [{ from: 0, to: Number.POSITIVE_INFINITY }];
  #reading: Promise<unknown> = Promise.resolve();
  #isClean: boolean;
  /** The view of a log that must be read as a whole, cached while memory allows. */
  #whole: { readonly size: number; readonly events: WeakRef<readonly SessionEvent[]> } | undefined;

  readonly #onDamage: (damage: readonly Damage[]) => void;

  /** `isClean`: no damage before any requested page. */
  constructor(path: string, options: { isClean: boolean; onDamage?: (damage: readonly Damage[]) => void }) {
    this.#path = path;
    this.#isClean = options.isClean;
    this.#onDamage = options.onDamage ?? (() => undefined);
  }

  /** Yields all events in view, oldest first. Each page verifies that all earlier lines are undamaged. */
  static async *events(path: string, onDamage?: (damage: readonly Damage[]) => void): AsyncGenerator<SessionEvent> {
    const pages = new LogPages(path, { isClean: true, ...defined({ onDamage }) });
    for (let from = 0; ; ) {
      const page = await pages.read(from, from + PAGE_EVENTS);
      if (page.length === 0) {
        // A complete last line without its newline counts.
        if (pages.#offset > pages.#lineEnd) yield* visibleEvents((await readLog(path)).events).events.slice(from);
        return;
      }
      yield* page;
      from += page.length;
    }
  }

  /** Returns a page. Reads run one at a time because they share the marks. */
  read(from: number, to: number): Promise<readonly SessionEvent[]> {
    const page = this.#reading.then(() => this.#read(from, to));
    this.#reading = page.catch(() => undefined);
    return page;
  }

  async #read(from: number, to: number): Promise<readonly SessionEvent[]> {
    if (to <= from) return [];
    const file = await open(this.#path, "r").catch((error: unknown) => {
      if (errorCode(error) === "ENOENT") return undefined;
      throw error;
    });
    if (!file) return [];
    try {
      if (!this.#isClean) return await this.#readWhole(file, from, to);
      const isRewound = await this.#findLines(file);
      if (isRewound) await this.#findView();
      if (!this.#isClean) return await this.#readWhole(file, from, to);
      const events: SessionEvent[] = [];
      for (const range of linesAt(this.#view, from, to)) {
        const some = await this.#readLines(file, { from: range.from, to: Math.min(range.to, this.#lines) });
        if (!some) return await this.#readWhole(file, from, to);
        for (const event of some) events.push(event);
      }
      return events;
    } finally {
      await file.close();
    }
  }

  /** Indexes the lines appended since the last call. Returns true if they contain a rewind. */
  async #findLines(file: FileHandle): Promise<boolean> {
    const buffer = Buffer.allocUnsafe(PIECE_BYTES);
    let isRewound = false;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, this.#offset);
      if (bytesRead === 0) return isRewound;
      const bytes = buffer.subarray(0, bytesRead);
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, end + 1)) {
        this.#lines++;
        this.#lineEnd = this.#offset + end + 1;
        if (this.#lines % LINES_PER_MARK === 0) this.#marks.push(this.#offset + end + 1);
      }
      const start = Buffer.concat([this.#overlap, bytes.subarray(0, REWIND.length)]);
      isRewound ||= start.includes(REWIND) || bytes.includes(REWIND);
      this.#overlap = Buffer.from(bytes.subarray(-REWIND.length));
      this.#offset += bytesRead;
    }
  }

  /** Returns `undefined` if the lines are not those of an undamaged log. */
  async #readLines(file: FileHandle, { from, to }: Range): Promise<SessionEvent[] | undefined> {
    if (to <= from) return [];
    const first = Math.floor(from / LINES_PER_MARK);
    const start = this.#marks[first] ?? 0;
    const end = this.#marks[Math.ceil(to / LINES_PER_MARK)] ?? this.#offset;
    const bytes = Buffer.allocUnsafe(end - start);
    for (let filled = 0; filled < bytes.length; ) {
      const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled);
      if (bytesRead === 0) return undefined;
      filled += bytesRead;
    }
    const events: SessionEvent[] = [];
    let line = first * LINES_PER_MARK;
    let begin = 0;
    for (; line < to; line++) {
      const newline = bytes.indexOf(NEWLINE, begin);
      if (newline === -1) return undefined;
      if (line >= from) {
        const decoded = decodeLine(bytes, begin, newline);
        if (decoded.kind !== "record" || decoded.seq !== line + 1) return undefined;
        events.push(decoded.event);
      }
      begin = newline + 1;
    }
    return events;
  }

  async #findView(): Promise<void> {
    const { events: all, damage } = await readLog(this.#path);
    // The n-th event is in the n-th line only if every line has one.
    if (damage.length > 0) this.#isClean = false;
    const lines = new Map(all.map((event, line) => [event, line]));
    const ranges: { from: number; to: number }[] = [];
    for (const event of visibleEvents(all).events) {
      const line = lines.get(event) ?? 0;
      const last = ranges.at(-1);
      if (last?.to === line) last.to = line + 1;
      else ranges.push({ from: line, to: line + 1 });
    }
    // Appended lines are in view.
    const last = ranges.at(-1);
    if (last) last.to = Number.POSITIVE_INFINITY;
    this.#view = ranges;
  }

  /** Reads the whole log. From then on lines do not match positions, so later pages are read this way too. */
  async #readWhole(file: FileHandle, from: number, to: number): Promise<readonly SessionEvent[]> {
    this.#isClean = false;
    const { size } = await file.stat();
    const known = this.#whole?.size === size ? this.#whole.events.deref() : undefined;
    if (known) return known.slice(from, to);
    const { events: all, damage } = await readLog(this.#path);
    const { events } = visibleEvents(all);
    if (!this.#whole) this.#onDamage(damage);
    this.#whole = { size, events: new WeakRef(events) };
    return events.slice(from, to);
  }
}

/** Returns the lines at these positions of the view, in order. */
function linesAt(view: readonly Range[], from: number, to: number): Range[] {
  const found: Range[] = [];
  let position = 0;
  for (const range of view) {
    const length = range.to - range.from;
    const start = Math.max(from, position);
    const end = Math.min(to, position + length);
    if (start < end) found.push({ from: range.from + start - position, to: range.from + end - position });
    position += length;
  }
  return found;
}
