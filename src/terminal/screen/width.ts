/** Widths in terminal cells. Nothing here throws, and a guess errs on the wide side: a wrong guess leaves a gap, not a wrap. */
import { visibleWidth } from "@earendil-works/pi-tui/dist/utils.js";

const ASCII = /^[ -~]*$/;
const SGR = /\u001b\[[\d;]*m/g;

/** The number of cells that the text takes; SGR sequences take none. */
export function widthOf(text: string): number {
  return ASCII.test(text) ? text.length : visibleWidth(text);
}

/** The most cells that a terminal may need: emoji that are joined may be drawn one by one. */
export function widestOf(text: string): number {
  const plain = text.replace(SGR, "");
  if (ASCII.test(plain)) return plain.length;
  let sum = 0;
  for (const character of plain) sum += character === "\u200d" ? 0 : visibleWidth(character);
  return Math.max(sum, visibleWidth(plain));
}

/** Cuts a styled row to at most `columns` cells and ends its style. */
export function clipRow(row: string, columns: number): string {
  if (columns <= 0) return "";
  if (row.length <= columns && ASCII.test(row)) return row;
  if (widestOf(row) <= columns) return row;
  let kept = "";
  let used = 0;
  let at = 0;
  const limit = columns - 1;
  for (const match of row.matchAll(/\u001b\[[\d;]*m/g)) {
    const before = takeCells(row.slice(at, match.index), limit - used);
    kept += before.text;
    used += before.cells;
    at = match.index + match[0].length;
    if (before.isCut) return `${kept}…${RESET}`;
    kept += match[0];
  }
  const rest = takeCells(row.slice(at), limit - used);
  return `${kept}${rest.text}${rest.isCut ? "…" : ""}${RESET}`;
}

const RESET = "\u001b[0m";

function takeCells(text: string, cells: number): { text: string; cells: number; isCut: boolean } {
  let kept = "";
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    const width = widestOf(segment);
    if (used + width > cells) return { text: kept, cells: used, isCut: true };
    kept += segment;
    used += width;
  }
  return { text: kept, cells: used, isCut: false };
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Splits one line of plain text into rows of at most `columns` cells, at blanks where possible. */
export function wrapPlain(line: string, columns: number): string[] {
  const most = Math.max(1, columns);
  const rows: string[] = [];
  let rest = line;
  while (widestOf(rest) > most) {
    const { text } = takeCells(rest, most);
    // At least one grapheme per row, also where it is wider than the row.
    const head = text === "" ? ([...graphemes.segment(rest)][0]?.segment ?? rest) : text;
    const blank = head.lastIndexOf(" ");
    const cut = blank > most / 2 && rest[head.length] !== " " ? blank : head.length;
    rows.push(rest.slice(0, cut).trimEnd());
    rest = rest.slice(cut).replace(/^ /, "");
  }
  rows.push(rest);
  return rows;
}

/** Names of keys on as few rows as they fit on (three at most), of about the same width, broken between two keys. */
export function keyRows(keys: string, columns: number): string[] {
  const parts = keys.split(" · ");
  const fewest = Math.min(MAX_KEY_ROWS, joinedRows(parts, columns).length);
  let width = Math.ceil(widthOf(keys) / fewest);
  while (width < columns && joinedRows(parts, width).length > fewest) width++;
  const rows = joinedRows(parts, Math.min(width, columns));
  return [...rows.slice(0, fewest - 1), rows.slice(fewest - 1).join(" · ")];
}

const MAX_KEY_ROWS = 3;

/** Fills one row after the other. */
function joinedRows(parts: readonly string[], columns: number): string[] {
  const rows: string[] = [];
  for (const part of parts) {
    const row = rows.at(-1);
    if (row !== undefined && widthOf(`${row} · ${part}`) <= columns) rows[rows.length - 1] = `${row} · ${part}`;
    else rows.push(part);
  }
  return rows;
}
