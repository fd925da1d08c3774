import type { IBufferCell, Terminal } from "@xterm/headless";

/** Sizes of a cell in the drawing. */
const CELL = { width: 8.4, height: 18 };
const MARGIN = 16;
const BAR = 28;

const PALETTE = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#e6edf3"];
const TEXT = "#e6edf3";

interface Run {
  text: string;
  readonly style: string;
}

/** The screen of an emulator as an SVG: text stays text, so that it can be read, searched and scaled. */
export function pictureOf(terminal: Terminal, { title, tidy }: { title: string; tidy(line: string): string }): string {
  const rows: string[] = [];
  const { active } = terminal.buffer;
  for (let row = 0; row < terminal.rows; row++) {
    const runs = runsOf(terminal, active.baseY + row);
    const y = BAR + MARGIN + (row + 1) * CELL.height - 5;
    const spans = runs.map(({ text, style }) => `<tspan${style}>${escaped(tidy(text))}</tspan>`).join("");
    if (spans !== "") rows.push(`<text x="${MARGIN}" y="${y}">${spans}</text>`);
  }
  const width = Math.ceil(terminal.cols * CELL.width + 2 * MARGIN);
  const height = BAR + terminal.rows * CELL.height + 2 * MARGIN;
  const caret = {
    x: MARGIN + active.cursorX * CELL.width,
    y: BAR + MARGIN + active.cursorY * CELL.height,
  };
  const lights = ["#ff5f57", "#febc2e", "#28c840"].map(
    (colour, index) => `<circle cx="${MARGIN + 4 + index * 18}" cy="16" r="5.5" fill="${colour}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`,
    ...lights,
    `<text x="${width / 2}" y="20" text-anchor="middle" font-family="sans-serif" font-size="12" fill="#8b949e">${escaped(title)}</text>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="${TEXT}">`,
    ...rows,
    "</g>",
    `<rect x="${caret.x.toFixed(1)}" y="${caret.y}" width="8" height="${CELL.height - 2}" fill="${TEXT}" opacity="0.7"/>`,
    "</svg>",
    "",
  ].join("\n");
}

/** Cells of one row with the same style, joined; blanks at its end are left out. */
function runsOf(terminal: Terminal, index: number): readonly Run[] {
  const line = terminal.buffer.active.getLine(index);
  const runs: Run[] = [];
  for (let column = 0; line && column < terminal.cols; column++) {
    const cell = line.getCell(column);
    if (!cell || cell.getWidth() === 0) continue;
    const style = styleOf(cell);
    const text = cell.getChars() || " ";
    const last = runs.at(-1);
    if (last?.style === style) last.text += text;
    else runs.push({ text, style });
  }
  while (runs.at(-1)?.text.trim() === "") runs.pop();
  return runs;
}

function styleOf(cell: IBufferCell): string {
  if (cell.getChars() === "") return "";
  const colour = cell.isFgPalette() ? PALETTE[cell.getFgColor() % 8] : undefined;
  const parts = [
    colour && ` fill="${colour}"`,
    cell.isDim() && ` fill-opacity="0.6"`,
    cell.isBold() && ` font-weight="bold"`,
    cell.isItalic() && ` font-style="italic"`,
  ];
  return parts.filter((part) => part).join("");
}

/** Renderers disagree about blanks at the start of a span, so that all are made hard. */
const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(" ", "\u00a0");
