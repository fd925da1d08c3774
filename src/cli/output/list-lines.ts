/** Lays out lists for a terminal: one line for each entry where it fits, several short lines where it does not. */
import { clipColumns, columnsOf } from "./columns.ts";

/** The least useful width of the cell that takes up the remaining space. */
const MIN_FLEXIBLE = 20;
const GAP = "  ";

export interface ListRow {
  /** Aligned over all rows. */
  readonly cells: readonly string[];
  /** Shortened as needed. */
  readonly text: string;
  /** Follows the text; never shortened on a line of its own. */
  readonly end?: string;
}

export interface ListLayout {
  /** Columns of the terminal. Undefined if the output is none: nothing is shortened to fit then. */
  readonly width: number | undefined;
  /** Columns of the text on a wide terminal and in files. */
  readonly textWidth: number;
}

export function listLines(rows: readonly ListRow[], { width, textWidth }: ListLayout): string {
  const count = Math.max(0, ...rows.map(({ cells }) => cells.length));
  const widths = Array.from({ length: count }, (_, column) =>
    Math.max(...rows.map(({ cells }) => columnsOf(cells[column] ?? ""))),
  );
  const head = ({ cells }: ListRow): string => cells.map((cell, column) => padded(cell, widths[column] ?? 0)).join(GAP);
  const fixed = widths.reduce((sum, one) => sum + one + GAP.length, 0);
  const ends = Math.max(0, ...rows.map(({ end }) => (end === undefined ? 0 : columnsOf(end) + GAP.length)));
  const room = width === undefined ? textWidth : Math.min(textWidth, width - fixed - ends);
  if (room >= MIN_FLEXIBLE || width === undefined) {
    const line = (row: ListRow): string =>
      [
        head(row),
        row.end === undefined ? clipColumns(row.text, room) : padded(clipColumns(row.text, room), room),
        row.end,
      ]
        .filter((part) => part !== undefined)
        .join(GAP);
    return rows.map((row) => `${line(row).trimEnd()}\n`).join("");
  }
  const stacked = (row: ListRow): string[] => [
    ...wrapCells(row.cells.map((cell, column) => (column === 0 ? cell : cell.trimEnd())).filter(Boolean), width),
    ...[row.text, row.end ?? ""].filter(Boolean).map((text) => `${GAP}${clipColumns(text, width - GAP.length)}`),
  ];
  return rows.map((row) => `${stacked(row).join("\n")}\n`).join("");
}

/** Puts as many cells on a line as fit. */
function wrapCells(cells: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const cell of cells) {
    const last = lines.at(-1);
    const joined = last === undefined ? cell : `${last}${GAP}${cell}`;
    if (last === undefined) lines.push(clipColumns(cell, width));
    else if (columnsOf(joined) <= width) lines[lines.length - 1] = joined;
    else lines.push(`${GAP}${clipColumns(cell, width - GAP.length)}`);
  }
  return lines;
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - columnsOf(text)));
