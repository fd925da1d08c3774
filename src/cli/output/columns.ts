/** The width of text on a terminal. */

/** Returns at least as many columns as a terminal needs for the text. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += widthOf(character.codePointAt(0) ?? 0);
  return columns;
}

/** From here on characters may be wide. Dashes, quotes, arrows and box-drawing lines are not. */
const widthOf = (point: number): number => (point < 0x1100 || (point >= 0x2010 && point < 0x25a0) ? 1 : 2);

export function clipColumns(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  if (width < 1) return "";
  let kept = "";
  let left = width - 1;
  for (const character of text) {
    left -= widthOf(character.codePointAt(0) ?? 0);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}
