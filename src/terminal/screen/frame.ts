/**
 * Frames of the main screen: pure functions from what was painted and what is to be painted to bytes. Committed lines are
 * written once, above the live region, and never touched again. Only the live region at the bottom is drawn over. Nothing
 * here clears the screen or sets a scroll region. One frame can reach above the live region: the one that takes away rows
 * which a narrower terminal has wrapped, if the terminal becomes wider before it arrives. It asks for the width it met.
 */
import { clipRow, widestOf } from "./width.ts";

/** The live region: rows of the interface, and the caret's cell within them. */
export interface LiveRegion {
  readonly rows: readonly string[];
  readonly caret: { readonly row: number; readonly column: number };
}

/** A live region as it is on the screen. */
export interface Painted extends LiveRegion {
  /** Cells per row, so that a later frame knows how many rows a narrower terminal has made of it. */
  readonly widths: readonly number[];
  readonly columns: number;
}

export interface FrameInput {
  readonly painted: Painted | undefined;
  /** Complete logical lines, without a line break; the terminal wraps them. */
  readonly commit: readonly string[];
  readonly liveRegion: LiveRegion;
  readonly columns: number;
  /** False for terminals that cut the caret's line instead of wrapping it anew when they become narrower (xterm.js). */
  readonly wrapsCaretLine: boolean;
  /** False for terminals that cut their rows instead of wrapping them anew when they become narrower. Default: true. */
  readonly reflows?: boolean;
  /** Committed rows directly above the region that are erased, too. `commit` begins with their text. Default: 0. */
  readonly erasesAbove?: number;
  /** Draw every row, also those that did not change. */
  readonly isWhole?: boolean;
}

export interface Frame {
  /** Empty when nothing changed. */
  readonly bytes: string;
  readonly painted: Painted;
  /**
   * The most committed rows that this frame erases if the terminal is wider than `columns` when it arrives. Unless 0, the
   * terminal answers the frame with a cursor report, whose column is the width that the erasure met.
   */
  readonly atRisk: number;
}

const ESC = "\u001b[";
const HIDE = `${ESC}?25l`;
const SHOW = `${ESC}?25h`;
/** Moves to the right edge, whichever column that is, and has the terminal report it. */
const ASK_WIDTH = `${ESC}999C${ESC}6n`;

export function frame(input: FrameInput): Frame {
  const { painted, commit, columns } = input;
  const region = fitRows(input.liveRegion, columns);
  const next: Painted = { ...region, columns, widths: region.rows.map(widestOf) };
  const isResized = painted !== undefined && painted.columns !== columns;
  if (painted && commit.length === 0 && !isResized && input.isWhole !== true) {
    const changed = changedRows(painted, next);
    return { bytes: changed === "" ? "" : `${HIDE}${changed}${SHOW}`, painted: next, atRisk: 0 };
  }
  const wrapped = painted && input.reflows !== false ? wrappedRows(painted, input) : { above: 0, all: 0 };
  const erasure = `${eraseSequence(painted, wrapped.above + (input.erasesAbove ?? 0))}${wrapped.all > 0 ? ASK_WIDTH : ""}`;
  const lines = commit.map((line) => `${line}\r\n`).join("");
  const bytes = `${HIDE}${erasure}\r${lines}${region.rows.join("\r\n")}${fromLastRow(next)}${SHOW}`;
  return { bytes, painted: next, atRisk: wrapped.all };
}

/**
 * Bytes that take the live region away and leave the cursor where it began. Without `wrapped` they never reach above it,
 * whatever the width of the terminal is when they arrive, but leave rows that a narrower terminal has wrapped.
 *
 * The first row is erased alone: tmux takes an erasure from the first cell of the screen for a cleared screen, and keeps a
 * copy in its history. A region has two rows.
 */
export function eraseSequence(painted: Painted | undefined, wrapped = 0): string {
  return painted ? `\r${upward(painted.caret.row + wrapped)}${ESC}K${ESC}B${ESC}J${ESC}A` : "";
}

const upward = (rows: number): string => (rows > 0 ? `${ESC}${rows}A` : "");

/** Rows are one cell narrower than the screen, so that none is ever wrapped. */
function fitRows({ rows, caret }: LiveRegion, columns: number): LiveRegion {
  const most = Math.max(1, columns - 1);
  return {
    rows: rows.map((row) => clipRow(row, most)),
    caret: { row: Math.min(caret.row, rows.length - 1), column: Math.max(0, Math.min(caret.column, most)) },
  };
}

/** Rows that a terminal which has become narrower has added to the region: above the caret, and altogether. */
function wrappedRows(
  { widths, caret }: Painted,
  { columns, wrapsCaretLine }: Pick<FrameInput, "columns" | "wrapsCaretLine">,
): { readonly above: number; readonly all: number } {
  const added = widths.map((width) => Math.max(1, Math.ceil(width / columns)) - 1);
  const sum = (rows: readonly number[]): number => rows.reduce((total, row) => total + row, 0);
  const caretLine = wrapsCaretLine ? Math.floor(caret.column / columns) : 0;
  return { above: sum(added.slice(0, caret.row)) + caretLine, all: sum(added) + caretLine };
}

/**
 * Only rows that differ are written. The whole row is erased before: tmux counts cells that were erased at its end as
 * used, and would wrap them when the window becomes narrower.
 */
function changedRows(painted: Painted, next: Painted): string {
  const isSame =
    painted.rows.length === next.rows.length &&
    painted.caret.row === next.caret.row &&
    painted.caret.column === next.caret.column &&
    painted.rows.every((row, index) => row === next.rows[index]);
  if (isSame) return "";
  let bytes = `\r${upward(painted.caret.row)}`;
  next.rows.forEach((row, index) => {
    if (index > 0) bytes += "\r\n";
    if (row !== painted.rows[index]) bytes += `${ESC}2K${row}`;
  });
  if (painted.rows.length > next.rows.length) bytes += `\r\n${ESC}J${ESC}A`;
  return `${bytes}${fromLastRow(next)}`;
}

/** From anywhere on the last row to the caret. */
function fromLastRow({ rows, caret }: LiveRegion): string {
  return `\r${upward(rows.length - 1 - caret.row)}${caret.column > 0 ? `${ESC}${caret.column}C` : ""}`;
}
