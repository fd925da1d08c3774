/**
 * Frames of the main screen: pure functions from what was painted and what is to be painted to bytes. Committed lines are
 * written once, above the live region, and never touched again. Only the live region at the bottom is drawn over. Nothing
 * here clears the screen, sets a scroll region or moves above the live region.
 */
import { clipRow, widestOf } from "./width.ts";

/** The live region: rows of the interface, and the caret's cell within them. */
export interface Live {
  readonly rows: readonly string[];
  readonly caret: { readonly row: number; readonly column: number };
}

/** A live region as it is on the screen. */
export interface Painted extends Live {
  /** Cells per row, so that a later frame knows how many rows a narrower terminal has made of it. */
  readonly widths: readonly number[];
  readonly columns: number;
}

export interface FrameInput {
  readonly painted: Painted | undefined;
  /** Complete logical lines, without a line break; the terminal wraps them. */
  readonly commit: readonly string[];
  readonly live: Live;
  readonly columns: number;
  /** False for terminals that cut the caret's line instead of wrapping it anew when they become narrower (xterm.js). */
  readonly wrapsCaretLine: boolean;
  /** Draw every row, also those that did not change. */
  readonly isWhole?: boolean;
}

export interface Frame {
  /** Empty when nothing changed. */
  readonly bytes: string;
  readonly painted: Painted;
}

const ESC = "\u001b[";
const HIDE = `${ESC}?25l`;
const SHOW = `${ESC}?25h`;

export function frame(input: FrameInput): Frame {
  const { painted, commit, columns } = input;
  const live = fitted(input.live, columns);
  const next: Painted = { ...live, columns, widths: live.rows.map(widestOf) };
  const isResized = painted !== undefined && painted.columns !== columns;
  if (painted && commit.length === 0 && !isResized && input.isWhole !== true) {
    const changed = changedRows(painted, next);
    return { bytes: changed === "" ? "" : `${HIDE}${changed}${SHOW}`, painted: next };
  }
  const lines = commit.map((line) => `${line}\r\n`).join("");
  const bytes = `${HIDE}${erased(input)}\r${lines}${live.rows.join("\r\n")}${fromLastRow(next)}${SHOW}`;
  return { bytes, painted: next };
}

/**
 * Bytes that take the live region away and leave the cursor where it began. The first row is erased alone: tmux takes an
 * erasure from the first cell of the screen for a cleared screen, and keeps a copy in its history. A region has two rows.
 */
export function erased({ painted, ...how }: Pick<FrameInput, "painted" | "columns" | "wrapsCaretLine">): string {
  return painted ? `${toTop(painted, how)}${ESC}K${ESC}B${ESC}J${ESC}A` : "";
}

/** Rows are one cell narrower than the screen, so that none is ever wrapped. */
function fitted({ rows, caret }: Live, columns: number): Live {
  const most = Math.max(1, columns - 1);
  return {
    rows: rows.map((row) => clipRow(row, most)),
    caret: { row: Math.min(caret.row, rows.length - 1), column: Math.max(0, Math.min(caret.column, most)) },
  };
}

/** From the caret to the first cell of the region, in a terminal that may have become narrower since it was painted. */
function toTop(
  painted: Painted,
  { columns, wrapsCaretLine }: { readonly columns: number; readonly wrapsCaretLine: boolean },
): string {
  const { widths, caret } = painted;
  let up = 0;
  for (let row = 0; row < caret.row; row++) up += Math.max(1, Math.ceil((widths[row] ?? 0) / columns));
  if (wrapsCaretLine) up += Math.floor(caret.column / columns);
  return `\r${up > 0 ? `${ESC}${up}A` : ""}`;
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
  let bytes = `\r${painted.caret.row > 0 ? `${ESC}${painted.caret.row}A` : ""}`;
  next.rows.forEach((row, index) => {
    if (index > 0) bytes += "\r\n";
    if (row !== painted.rows[index]) bytes += `${ESC}2K${row}`;
  });
  if (painted.rows.length > next.rows.length) bytes += `\r\n${ESC}J${ESC}A`;
  return `${bytes}${fromLastRow(next)}`;
}

/** From anywhere on the last row to the caret. */
function fromLastRow({ rows, caret }: Live): string {
  const up = rows.length - 1 - caret.row;
  return `\r${up > 0 ? `${ESC}${up}A` : ""}${caret.column > 0 ? `${ESC}${caret.column}C` : ""}`;
}
