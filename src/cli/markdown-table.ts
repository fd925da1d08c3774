/** Renders Markdown tables in columns that fit the terminal. */

import { BOLD, DIM, type Span, styled } from "../lib/markdown-spans.ts";
import { spansIn, Wrap } from "./markdown-inline.ts";
import { columnsOf } from "./output/columns.ts";

const MIN_COLUMN = 6;
const GAP = " │ ";

export const isTableRow = (line: string): boolean => /^\s*\|.*\|\s*$/.test(line);

/** Returns the table, or undefined if the lines are not a table or it has too many columns for the width. */
export function tableText(lines: readonly string[], width: number): string | undefined {
  const [head, rule, ...body] = lines.map(cellsOf);
  if (head === undefined || rule === undefined || !rule.every((cell) => /^:?-+:?$/.test(cell))) return undefined;
  const rows = [head.map((cell) => spansIn(cell, [BOLD])), ...body.map((row) => row.map((cell) => spansIn(cell)))];
  const count = Math.max(...rows.map((row) => row.length));
  const room = width - GAP.length * (count - 1);
  if (count * MIN_COLUMN > room) return undefined;
  const widths = fitWidths(
    Array.from({ length: count }, (_, at) => Math.max(1, ...rows.map((row) => columnsOf(plain(row[at] ?? []))))),
    room,
  );
  const isRight = (at: number): boolean => /^-+:$/.test(rule[at] ?? "");
  const drawn = rows.flatMap((row, index) => {
    const cells = widths.map((columns, at) => cellLines(row[at] ?? [], columns, isRight(at)));
    const height = Math.max(...cells.map(({ length }) => length));
    const text = Array.from({ length: height }, (_, at) =>
      cells
        .map((cell, column) => cell[at] ?? " ".repeat(widths[column] ?? 0))
        .join(styled(GAP, [DIM]))
        .trimEnd(),
    );
    return index === 0 ? [...text, styled(widths.map((columns) => "─".repeat(columns)).join("─┼─"), [DIM])] : text;
  });
  return `${drawn.join("\n")}\n`;
}

function cellsOf(line: string): string[] {
  const inner = line.trim().replace(/^\||\|$/g, "");
  const cells: string[] = [];
  let cell = "";
  // A bar in code or after a backslash separates nothing.
  for (const [part] of inner.matchAll(/\\\||(`+)(?!`).*?(?<!`)\1(?!`)|[\s\S]/g)) {
    if (part !== "|") cell += part === "\\|" ? "|" : part;
    else {
      cells.push(cell.trim());
      cell = "";
    }
  }
  return [...cells, cell.trim()];
}

/** The widest columns shrink first. */
function fitWidths(natural: readonly number[], room: number): readonly number[] {
  let most = Math.max(...natural);
  const total = (): number => natural.reduce((sum, width) => sum + Math.min(width, most), 0);
  while (total() > room && most > MIN_COLUMN) most--;
  return natural.map((width) => Math.min(width, most));
}

function cellLines(spans: readonly Span[], width: number, isRight: boolean): string[] {
  const broken = spans.map(({ text, styles }) => ({ styles, text: breakWords(text, width) }));
  return new Wrap({ width, first: 0, indent: "" })
    .write(broken)
    .split("\n")
    .map((line) => {
      const blanks = " ".repeat(Math.max(0, width - columnsOf(line.replace(/\u001b\[[\d;]*m/g, ""))));
      return isRight ? blanks + line : line + blanks;
    });
}

function breakWords(text: string, width: number): string {
  return text.replace(/\S+/g, (word) => {
    if (columnsOf(word) <= width) return word;
    let out = "";
    let column = 0;
    for (const character of word) {
      const columns = columnsOf(character);
      if (column + columns > width) {
        out += " ";
        column = 0;
      }
      out += character;
      column += columns;
    }
    return out;
  });
}

const plain = (spans: readonly Span[]): string => spans.map(({ text }) => text).join("");
