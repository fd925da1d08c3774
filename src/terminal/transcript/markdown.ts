/** Parts of Markdown as styled logical lines. Text is made safe first; our own styles are added afterwards. */
import { markdownSpans } from "../../lib/markdown-spans.ts";
import type { MarkdownPart } from "../../view/blocks.ts";
import { safe } from "../screen/safe.ts";
import { plainStyle, type Style } from "../screen/style.ts";
import { widthOf } from "../screen/width.ts";

const MAX_CELL = 60;
const RULE = "─".repeat(24);

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
      return text.split("\n").map((line) => textLine(line, style));
  }
}

function codeLines({ isFirst, language }: MarkdownPart, text: string, style: Style): string[] {
  const head = isFirst && language !== "" ? [style.dim(`  ${safe(language)}`)] : [];
  return [...head, ...text.split("\n").map((line) => (line === "" ? "" : `  ${style.cyan(line)}`))];
}

/** Rules, quotes, items and their boxes; all else is emphasis within the line. */
function textLine(line: string, style: Style): string {
  if (/^ {0,3}([-*_])(?:\s*\1){2,}\s*$/.test(line)) return style.dim(RULE);
  const [, quote, quoted = ""] = /^ {0,3}((?:>\s?)+)(.*)$/.exec(line) ?? [];
  if (quote !== undefined) return `${style.dim(quote.replaceAll(/>\s?/g, "│ "))}${inline(quoted, style)}`;
  const item = line
    .replace(/^(\s*)[-*+] \[( |x|X)\] /, (_, blanks: string, mark: string) => `${blanks}${mark === " " ? "☐" : "☑"} `)
    .replace(/^(\s*)[-*+] /, "$1• ");
  return inline(item, style);
}

/** A link shows its whole target. */
const inline = (line: string, style: Style): string => style.spans(markdownSpans(line));

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
  const rule = cells.find(isRule) ?? [];
  const shownWidth = (cell: string): number => widthOf(inline(cell, plainStyle));
  const count = Math.max(0, ...body.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, column) =>
    Math.min(MAX_CELL, Math.max(0, ...body.map((row) => shownWidth(row[column] ?? "")))),
  );
  const hasHead = cells.length > 1 && isRule(cells[1] ?? []);
  return body.map((row, index) => {
    const padded = widths.map((width, column) => {
      const cell = row[column] ?? "";
      const blanks = " ".repeat(Math.max(0, width - shownWidth(cell)));
      const isRight = /^-+:$/.test(rule[column] ?? "");
      return isRight ? `${blanks}${inline(cell, style)}` : `${inline(cell, style)}${blanks}`;
    });
    const line = padded.join("  ").trimEnd();
    return hasHead && index === 0 ? style.bold(line) : line;
  });
}
