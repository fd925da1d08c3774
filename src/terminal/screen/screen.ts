/**
 * The main screen: commits lines, keeps the live region below them, and gives the terminal to an overlay while one is
 * open. Each frame is one write. Frames wait while the terminal is being resized or has not taken the last write.
 */
import { CommittedLines, type CommittedText } from "./committed.ts";
import { eraseSequence, frame, type LiveRegion, type Painted } from "./frame.ts";

interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface ScreenPorts {
  /** Returns false when the terminal does not keep up; `onDrain` is then called once it does. */
  write(bytes: string): boolean;
  onDrain(listener: () => void): void;
  /** The size now. May call `resized` when it has changed. */
  size(): Size;
  /** The live region for this size. Called only when a frame is drawn. */
  liveRegion(size: Size): LiveRegion;
  /** All rows of the open overlay. */
  overlay?(size: Size): readonly string[];
  readonly wrapsCaretLine: boolean;
  /** False for terminals that cut their rows when they become narrower. Default: true. */
  readonly reflows?: boolean;
  /** Fills prose with blanks so that it breaks between words at this width. Default: unchanged. */
  fill?(line: string, columns: number): string;
  /** The region that the first frame painted. */
  readonly painted?: Painted;
}

/** Terminals send many sizes while a window is dragged; drawing in between would be drawn at the wrong width. */
const RESIZE_MS = 100;
/** The shortest time between two frames that no key asked for. */
const FRAME_MS = 50;

const ESC = "\u001b[";
const ENTER_ALTERNATE = `${ESC}?1049h`;
const LEAVE_ALTERNATE = `${ESC}?1049l`;

export class Screen {
  readonly #ports: ScreenPorts;
  #painted: Painted | undefined;
  #waiting: CommittedText[] = [];
  readonly #committed = new CommittedLines();
  #overlay: { readonly size: string; rows: readonly string[] } | undefined;
  #resizing: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #isBlocked = false;
  #isSuspended = false;
  #isClosed = false;
  #reflows: boolean;
  /** The fewest columns and the most rows since the last frame on the main screen, its own size included. */
  #met: Size = { columns: Number.POSITIVE_INFINITY, rows: 0 };
  /** The region is directly below the committed lines. */
  #isBelowLines = true;
  #lastFrame = Number.NEGATIVE_INFINITY;
  #bytes = 0;
  #frames = 0;

  constructor(ports: ScreenPorts) {
    this.#ports = ports;
    this.#painted = ports.painted;
    this.#reflows = ports.reflows ?? true;
  }

  /** Bytes and frames written so far. */
  get written(): { readonly bytes: number; readonly frames: number } {
    return { bytes: this.#bytes, frames: this.#frames };
  }

  get isOverlayOpen(): boolean {
    return this.#overlay !== undefined;
  }

  /** Writes these logical lines above the live region with the next frame. */
  commit(lines: readonly string[], { isProse }: { readonly isProse: boolean } = { isProse: false }): void {
    this.#commit(lines.map((text) => ({ text, isProse })));
  }

  #commit(lines: readonly CommittedText[]): void {
    if (lines.length === 0) return;
    for (const line of lines) this.#waiting.push(line);
    this.changed();
  }

  /** The terminal says its name. xterm cuts its rows when it becomes narrower. */
  identified(name: string): void {
    if (name.startsWith("XTerm(")) this.#reflows = false;
  }

  /** Something changed by itself: draws soon, together with other changes. */
  changed(): void {
    if (this.#timer || this.#soon || this.#isClosed) return;
    const wait = Math.max(0, this.#lastFrame + FRAME_MS - performance.now());
    this.#timer = setTimeout(() => this.draw(), wait);
  }

  /** A key changed something: draws as soon as the keys that came with it are handled. */
  changedByKey(): void {
    if (this.#soon || this.#isClosed) return;
    this.#soon = setImmediate(() => this.draw());
  }

  /** Draws now, unless the terminal is being resized or is behind. */
  draw(): void {
    clearTimeout(this.#timer);
    if (this.#soon) clearImmediate(this.#soon);
    this.#timer = undefined;
    this.#soon = undefined;
    if (this.#isClosed || this.#isBlocked || this.#isSuspended) return;
    const size = this.#ports.size();
    // Asking for the size may have told that it has just changed.
    if (this.#resizing) return;
    this.#lastFrame = performance.now();
    if (this.#overlay) this.#drawOverlay(size);
    else this.#drawMain(size, { isWhole: false });
  }

  /** Draws every row of the live region again. */
  redraw(): void {
    if (this.#isClosed || this.#overlay || this.#isSuspended) return;
    const size = this.#ports.size();
    // Once the size has stayed the same, a frame follows anyway.
    if (!this.#resizing) this.#drawMain(size, { isWhole: true });
  }

  /** The size changed: nothing is written until it has stayed the same for a moment. */
  resized(): void {
    clearTimeout(this.#resizing);
    this.#meet(this.#ports.size());
    this.#resizing = setTimeout(() => {
      this.#resizing = undefined;
      this.draw();
    }, RESIZE_MS);
  }

  /** The terminal reports its last column, which a frame asked for. */
  reported(column: number): void {
    this.#commit(this.#committed.reported(column));
  }

  openOverlay(): void {
    if (this.#overlay || this.#isClosed) return;
    const bytes = this.#eraseLiveRegion();
    this.#overlay = { size: this.#sizeText(), rows: [] };
    this.#write(`${bytes}${ENTER_ALTERNATE}${ESC}?25l`);
    this.draw();
  }

  closeOverlay(): void {
    const overlay = this.#overlay;
    if (!overlay) return;
    this.#overlay = undefined;
    // A terminal that was resized meanwhile may have lost the place: below everything is always free.
    const prefix = overlay.size === this.#sizeText() ? "" : `${ESC}999;1H\r\n`;
    if (prefix !== "") this.#isBelowLines = false;
    this.#write(`${LEAVE_ALTERNATE}${prefix}`);
    this.#painted = undefined;
    this.draw();
  }

  /** Hands the terminal to another program: the live region is taken away, and drawn again by `resume`. */
  suspend(): void {
    if (this.#overlay) this.closeOverlay();
    this.#write(this.#eraseLiveRegion());
    this.#isSuspended = true;
  }

  resume(): void {
    this.#isSuspended = false;
    this.#isBelowLines = false;
    this.draw();
  }

  /** Takes the live region away for good, writes what waits and these last lines. */
  close(lines: readonly string[]): void {
    if (this.#isClosed) return;
    if (this.#overlay) {
      this.#overlay = undefined;
      this.#write(LEAVE_ALTERNATE);
    }
    const { columns } = this.#ports.size();
    const waiting = this.#waiting.map((line) => this.#filled(line, columns));
    const last = [...waiting, ...lines].map((line) => `${line}\r\n`).join("");
    this.#waiting = [];
    this.#write(`${this.#eraseLiveRegion()}${last}${ESC}?25h`);
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#resizing);
    if (this.#soon) clearImmediate(this.#soon);
  }

  #eraseLiveRegion(): string {
    const bytes = eraseSequence(this.#painted);
    this.#painted = undefined;
    return bytes;
  }

  #drawMain(size: Size, { isWhole }: { isWhole: boolean }): void {
    const { columns } = size;
    this.#meet(size);
    const cut = this.#takeCut();
    const lines = [...cut.lines, ...this.#waiting].map((line) => ({ ...line, written: this.#filled(line, columns) }));
    const { bytes, painted, atRisk } = frame({
      painted: this.#painted,
      commit: lines.map(({ written }) => written),
      liveRegion: this.#ports.liveRegion(size),
      columns,
      wrapsCaretLine: this.#ports.wrapsCaretLine,
      reflows: this.#reflows,
      erasesAbove: cut.rows,
      isWhole: isWhole || cut.isCut,
    });
    if (atRisk > 0) this.#committed.expectReport({ columns, atRisk });
    this.#committed.add(lines, columns);
    this.#waiting = [];
    this.#painted = painted;
    this.#met = { ...size };
    this.#write(bytes);
  }

  /** The lines that a terminal without reflow has cut since the last frame, and their rows directly above the region. */
  #takeCut(): { readonly isCut: boolean; readonly rows: number; readonly lines: readonly CommittedText[] } {
    const { columns: narrowest, rows } = this.#met;
    const isCut = !this.#reflows && this.#painted !== undefined && narrowest < this.#painted.columns;
    const within = rows - (this.#painted?.rows.length ?? 0);
    const cut = this.#reflows ? { rows: 0, lines: [] } : this.#committed.takeCut({ narrowest, within });
    if (this.#isBelowLines) return { isCut, ...cut };
    this.#committed.forget();
    this.#isBelowLines = true;
    return { isCut, rows: 0, lines: cut.lines };
  }

  #meet({ columns, rows }: Size): void {
    this.#met = { columns: Math.min(columns, this.#met.columns), rows: Math.max(rows, this.#met.rows) };
  }

  #filled({ text, isProse }: CommittedText, columns: number): string {
    return isProse ? (this.#ports.fill?.(text, columns) ?? text) : text;
  }

  #drawOverlay(size: Size): void {
    const rows = this.#ports.overlay?.(size) ?? [];
    const before = this.#overlay?.rows ?? [];
    let bytes = "";
    for (let row = 0; row < size.rows; row++) {
      const text = rows[row] ?? "";
      if (before.length === size.rows && before[row] === text) continue;
      bytes += `${ESC}${row + 1};1H${text}${ESC}K`;
    }
    if (this.#overlay) this.#overlay.rows = Array.from({ length: size.rows }, (_, row) => rows[row] ?? "");
    this.#write(bytes);
  }

  #sizeText(): string {
    const { columns, rows } = this.#ports.size();
    return `${columns}x${rows}`;
  }

  #write(bytes: string): void {
    if (bytes === "") return;
    this.#bytes += bytes.length;
    this.#frames++;
    if (this.#ports.write(bytes) || this.#isClosed) return;
    this.#isBlocked = true;
    this.#ports.onDrain(() => {
      this.#isBlocked = false;
      this.draw();
    });
  }
}
