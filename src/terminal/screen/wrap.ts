/** Wraps styled lines for the alternate screen, where the terminal reflows nothing. */
import { wrapTextWithAnsi } from "@earendil-works/pi-tui/dist/utils.js";

const SHORT = /^[ -~]*$/;

/** At least one row; styles go on in the next row. */
export function wrapStyled(line: string, columns: number): string[] {
  if (line.length <= columns && SHORT.test(line)) return [line];
  const rows = wrapTextWithAnsi(line.replaceAll("\t", "    "), columns);
  return rows.length === 0 ? [""] : rows;
}
