/**
 * The last committed lines, and which of them must be written again.
 *
 * - A frame that takes rows away which the terminal has wrapped reaches into committed lines if the terminal has become
 *   wider before the frame arrives. The terminal reports the width that each such frame met; the lines of a frame that met
 *   a greater one are written again.
 * - A terminal that does not reflow cuts the rows on its screen when it becomes narrower.
 */
import { widthOf } from "./width.ts";

export interface CommittedText {
  readonly text: string;
  /** Filled with blanks, for the width at which it is written, so that it breaks between words. */
  readonly isProse: boolean;
}

interface Line extends CommittedText {
  /** The text as it is on the screen, and the width of the screen. */
  readonly written: string;
  readonly columns: number;
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
  add(lines: readonly (CommittedText & Pick<Line, "written">)[], columns: number): void {
    if (lines.length === 0) return;
    const added = lines.slice(-MOST_LINES).map((line) => ({ ...line, columns, isWrittenAgain: false }));
    this.#lines = [...this.#lines, ...added].slice(-MOST_LINES);
  }

  /** Another program has written below these lines. */
  forget(): void {
    this.#lines = [];
  }

  /** A frame was written that erases up to `atRisk` committed rows if the terminal is wider than `columns`. */
  expectReport({ columns, atRisk }: { readonly columns: number; readonly atRisk: number }): void {
    // Lines that earlier frames have erased are missing above this frame, which then reaches further.
    const reach = this.#unconfirmed.reduce((total, frame) => total + frame.atRisk, atRisk);
    this.#unconfirmed.push({ columns, atRisk, lines: this.#lines.slice(-reach) });
    if (this.#unconfirmed.length > MOST_UNCONFIRMED) this.#unconfirmed.shift();
  }

  /** Takes the next report of a width, and returns the lines to write again. */
  reported(width: number): readonly CommittedText[] {
    const frame = this.#unconfirmed.shift();
    if (!frame || width <= frame.columns) return [];
    const lost = frame.lines.filter((line) => !line.isWrittenAgain);
    for (const line of lost) line.isWrittenAgain = true;
    this.#lines = this.#lines.filter((line) => !line.isWrittenAgain);
    return lost;
  }

  /**
   * Takes out the lines on the last `within` rows from the first on that a screen of `narrowest` columns has cut, and
   * returns them with the number of rows that they take.
   */
  takeCut({ narrowest, within }: { readonly narrowest: number; readonly within: number }): {
    readonly rows: number;
    readonly lines: readonly CommittedText[];
  } {
    let [rows, cutRows, from] = [0, 0, this.#lines.length];
    for (let index = this.#lines.length - 1; index >= 0 && rows < within; index--) {
      const { written = "", columns = 1 } = this.#lines[index] ?? {};
      const width = widthOf(written);
      rows += Math.max(1, Math.ceil(width / columns));
      if (Math.min(width, columns) > narrowest) [cutRows, from] = [rows, index];
    }
    return { rows: cutRows, lines: this.#lines.splice(from) };
  }
}
