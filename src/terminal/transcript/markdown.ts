/** Parts of Markdown as styled logical lines. Text is made safe first; our own styles are added afterwards. */
import type { MarkdownPart } from "../../view/blocks.ts";
import { safe } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { widthOf } from "../screen/width.ts";

const MAX_CELL = 60;

export function markdownLines(part: MarkdownPart, style: Style): string[] {
  const text = safe(part.text);
  switch (part.kind) {
    case "heading":
      return [style.bold(text.replace(/^\s*#{1,6}\s*/, "").replace(/\s*#+\s*$/, ""))];
    case "code":
      return codeLines(part, text, style);
    case "table":
      return tableLines(text.split("\n"), style);
    case "item":
    case "text":
      return text.split("\n").map((line) => inline(bullet(line), style));
  }
}

function codeLines({ isFirst, language }: MarkdownPart, text: string, style: Style): string[] {
  const head = isFirst && language !== "" ? [style.dim(`  ${safe(language)}`)] : [];
  return [...head, ...text.split("\n").map((line) => (line === "" ? "" : `  ${style.cyan(line)}`))];
}

const bullet = (line: string): string => line.replace(/^(\s*)[-*+] /, "$1• ");

/** Bold, code and links; a link shows its whole target. */
function inline(line: string, style: Style): string {
  return line.replace(
    /`([^`]+)`|\*\*([^*\s](?:[^*]*[^*\s])?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g,
    (_, code?: string, bold?: string, label?: string, target?: string) => {
      if (code !== undefined) return style.cyan(code);
      if (bold !== undefined) return style.bold(bold);
      return label === target ? (target ?? "") : `${label} (${style.dim(target ?? "")})`;
    },
  );
}

function tableLines(lines: readonly string[], style: Style): string[] {
  const cells = lines.map((line) =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|")),
  );
  const isRule = (row: readonly string[]): boolean => row.every((cell) => /^:?-+:?$/.test(cell));
  const body = cells.filter((row) => !isRule(row));
  const count = Math.max(0, ...body.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, column) =>
    Math.min(MAX_CELL, Math.max(0, ...body.map((row) => widthOf(row[column] ?? "")))),
  );
  const hasHead = cells.length > 1 && isRule(cells[1] ?? []);
  return body.map((row, index) => {
    const padded = widths.map((width, column) => {
      const cell = row[column] ?? "";
      return `${inline(cell, style)}${" ".repeat(Math.max(0, width - widthOf(cell)))}`;
    });
    const line = padded.join("  ").trimEnd();
    return hasHead && index === 0 ? style.bold(line) : line;
  });
}
