/**
 * The last committed lines, and which of them a frame may have erased. A frame that takes rows away which the terminal has
 * wrapped reaches into committed lines if the terminal has become wider before the frame arrives. The terminal reports the
 * width that each such frame met; the lines of a frame that met a greater one are written again.
 */

interface Line {
  readonly text: string;
  isWrittenAgain: boolean;
}

interface Unconfirmed {
  readonly columns: number;
  readonly atRisk: number;
  readonly lines: readonly Line[];
}

const MOST_LINES = 400;
/** Older frames are forgotten: not every terminal reports. */
const MOST_UNCONFIRMED = 8;

export class CommittedLines {
  #lines: Line[] = [];
  #unconfirmed: Unconfirmed[] = [];

  /** These lines are now on the screen, or on their way to it. */
  add(lines: readonly string[]): void {
    if (lines.length === 0) return;
    const added = lines.slice(-MOST_LINES).map((text) => ({ text, isWrittenAgain: false }));
    this.#lines = [...this.#lines, ...added].slice(-MOST_LINES);
  }

  /** A frame was written that erases up to `atRisk` committed rows if the terminal is wider than `columns`. */
  expectReport({ columns, atRisk }: { readonly columns: number; readonly atRisk: number }): void {
    // Lines that earlier frames have erased are missing above this frame, which then reaches further.
    const reach = this.#unconfirmed.reduce((total, frame) => total + frame.atRisk, atRisk);
    this.#unconfirmed.push({ columns, atRisk, lines: this.#lines.slice(-reach) });
    if (this.#unconfirmed.length > MOST_UNCONFIRMED) this.#unconfirmed.shift();
  }

  /** Takes the next report of a width, and returns the lines to write again. */
  reported(width: number): readonly string[] {
    const frame = this.#unconfirmed.shift();
    if (!frame || width <= frame.columns) return [];
    const lost = frame.lines.filter((line) => !line.isWrittenAgain);
    for (const line of lost) line.isWrittenAgain = true;
    this.#lines = this.#lines.filter((line) => !line.isWrittenAgain);
    return lost.map(({ text }) => text);
  }
}
