/** Wraps styled lines at blanks: into rows for the alternate screen, within one logical line for the main screen. */
import { wrapTextWithAnsi } from "@earendil-works/pi-tui/dist/utils.js";
import { widthOf } from "./width.ts";

const SHORT = /^[ -~]*$/;

/** At least one row; styles go on in the next row. */
export function wrapStyled(line: string, columns: number): string[] {
  if (line.length <= columns && SHORT.test(line)) return [line];
  const rows = wrapTextWithAnsi(line.replaceAll("\t", "    "), columns);
  return rows.length === 0 ? [""] : rows;
}

/**
 * Like `wrapStyled`; the second column of a row of two columns stays a column. Where the first column takes over half of
 * the row, continuation rows have a small indent.
 */
export function wrapHanging(line: string, columns: number): string[] {
  const [head = ""] = TWO_COLUMNS.exec(line) ?? [];
  const column = widthOf(head.replace(STYLE, ""));
  if (column <= columns / 2) {
    const rows = wrapStyled(line.slice(head.length), columns - column);
    return rows.map((row, index) => `${index === 0 ? head : " ".repeat(column)}${row}`);
  }
  if (widthOf(line.replace(STYLE, "")) <= columns) return [line];
  const indent = Math.min(NARROW_INDENT, columns - 1);
  return wrapStyled(line, columns - indent).map((row, index) => `${" ".repeat(index === 0 ? 0 : indent)}${row}`);
}

const NARROW_INDENT = 4;

/** Such as `  ctrl+c   interrupt`. */
const TWO_COLUMNS = /^ {2}\S.*? {2,}(?=\S)/;
const INDENT = /^ *(?:[•☐☑›!✗?◆] |\d{1,3}[.)] )?/;
const STYLE = /\u001b\[[\d;]*m/g;

/**
 * Fills a logical line with blanks, so that the terminal wraps it between words. It stays one line: after a resize the
 * terminal wraps it anew, then with gaps. Continuation rows are indented like the text after a bullet.
 */
export function fillLine(line: string, columns: number): string {
  const plain = line.replace(STYLE, "");
  if (columns < MIN_COLUMNS || widthOf(plain) <= columns || /[\t\u001b]/.test(plain)) return line;
  const indent = widthOf(INDENT.exec(plain)?.[0] ?? "");
  let filled = "";
  let used = 0;
  for (const [part] of line.matchAll(/ +|[^ ]+/g)) {
    const width = widthOf(part.replace(STYLE, ""));
    const isBroken = part[0] !== " " && used + width >= columns && width < columns - indent;
    if (isBroken) filled += " ".repeat(columns - used + indent);
    filled += part;
    used = (isBroken ? indent + width : used + width) % columns;
  }
  return filled;
}

const MIN_COLUMNS = 20;
