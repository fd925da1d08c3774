/**
 * Renders Markdown on a terminal while it arrives. All text is sanitised, so the only escape sequences in the result
 * are styles written here. Code keeps its lines and spaces; other text is wrapped at words.
 */
import { BOLD, DIM, type Style, styled, UNDERLINE } from "../lib/markdown-spans.ts";
import { sanitise } from "../lib/text.ts";
import { shownUpTo, spansIn, Wrap } from "./markdown-inline.ts";
import { isTableRow, tableText } from "./markdown-table.ts";
import { columnsOf } from "./output/columns.ts";

const MAX_TABLE_ROWS = 500;
/** An unfinished line of this length is shown unchanged. */
const MAX_PENDING = 2_000;

export class Markdown {
  readonly #width: () => number;
  #pending = "";
  #fence: Fence | undefined;
  #table: string[] = [];
  /** A line whose beginning was shown. */
  #open: { readonly wrap: Wrap; readonly styles: readonly Style[] } | undefined;

  constructor(how: { width: () => number }) {
    this.#width = () => Math.max(20, how.width());
  }

  /** Adds the next characters. Returns the part that can be shown. */
  push(text: string): string {
    this.#pending += text.replace(/\r\n?/g, "\n");
    let out = "";
    for (let end = this.#pending.indexOf("\n"); end >= 0; end = this.#pending.indexOf("\n")) {
      const line = this.#pending.slice(0, end);
      this.#pending = this.#pending.slice(end + 1);
      out += this.#line(line);
    }
    return out + this.#partial();
  }

  /** Returns the rest, with a new line at its end. */
  end(): string {
    const rest = this.#pending;
    this.#pending = "";
    const last = rest === "" && this.#open === undefined ? "" : this.#line(rest);
    const table = this.#tableEnd();
    this.#fence = undefined;
    return last + table;
  }

  #line(line: string): string {
    if (this.#open) {
      const { wrap, styles } = this.#open;
      this.#open = undefined;
      return `${wrap.write(spansIn(line, styles))}\n`;
    }
    if (this.#fence) return this.#codeLine(line, this.#fence);
    if (isTableRow(line) && this.#table.length < MAX_TABLE_ROWS) {
      this.#table.push(line);
      return "";
    }
    const before = this.#tableEnd();
    const fence = fenceOf(line);
    if (fence) {
      this.#fence = fence;
      return before;
    }
    if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line)) return `${before}${styled(rule(this.#width()), [DIM])}\n`;
    const { prefix, columns, indent, rest, styles } = blockOf(line);
    const wrap = new Wrap({ width: this.#width(), first: columns, indent });
    return `${before}${prefix}${wrap.write(spansIn(rest, styles))}\n`;
  }

  #codeLine(line: string, fence: Fence): string {
    if (isClosing(line, fence)) {
      this.#fence = undefined;
      return "";
    }
    const indent = line.startsWith(fence.indent) ? line.slice(fence.indent.length) : line;
    return `${`    ${sanitise(indent)}`.trimEnd()}\n`;
  }

  /** Returns the part of an unfinished line that the rest of the line cannot change. */
  #partial(): string {
    const pending = this.#pending;
    if (this.#fence || pending === "") return "";
    if (!this.#open && !BEGINS_TEXT.test(pending)) return "";
    const end = pending.length > MAX_PENDING ? pending.length : shownUpTo(pending);
    const shown = pending.slice(0, end);
    if (shown.trim() === "" || (!this.#open && IS_ITEM_START.test(shown))) return "";
    const before = this.#open ? "" : this.#tableEnd();
    if (!this.#open) {
      const { prefix, columns, indent, rest, styles } = blockOf(shown);
      this.#pending = pending.slice(end);
      const wrap = new Wrap({ width: this.#width(), first: columns, indent });
      this.#open = { wrap, styles };
      return `${before}${prefix}${wrap.write(spansIn(rest, styles))}`;
    }
    this.#pending = pending.slice(end);
    return this.#open.wrap.write(spansIn(shown, this.#open.styles));
  }

  #tableEnd(): string {
    if (this.#table.length === 0) return "";
    const lines = this.#table;
    this.#table = [];
    return tableText(lines, this.#width()) ?? `${lines.map((line) => sanitise(line)).join("\n")}\n`;
  }
}

interface Fence {
  readonly indent: string;
  readonly marker: string;
}

function fenceOf(line: string): Fence | undefined {
  const { indent, marker } = /^(?<indent>\s*)(?<marker>`{3,}|~{3,})(?!.*`)/.exec(line)?.groups ?? {};
  return marker === undefined ? undefined : { indent: indent ?? "", marker };
}

const isClosing = (line: string, { marker }: Fence): boolean => {
  const text = line.trim();
  return text.length >= marker.length && text === (marker[0] ?? "").repeat(text.length);
};

interface Block {
  /** The start of the line, and its width. */
  readonly prefix: string;
  readonly columns: number;
  /** The prefix of the following lines if it is wrapped. */
  readonly indent: string;
  readonly rest: string;
  readonly styles: readonly Style[];
}

const ITEM = /^(?<blanks>\s*)(?<marker>[-*+]|\d{1,9}[.)])\s+(?<task>\[[ xX]\]\s+)?(?<rest>\S.*)?$/;
/** Unfinished lines that can only become text or a list item. */
const BEGINS_TEXT = /^\s*(?:[\p{L}\p{N}("'“„¿¡]|\*\*[^\s*]|`[^`]|(?:[-*+]|\d{1,9}[.)])\s+[^\s*_-]).*\s/u;
const IS_ITEM_START = /^\s*(?:[-*+]|\d{1,9}[.)]?)\s*(?:\[[ xX]?\]?\s*)?$/;

function blockOf(line: string): Block {
  const heading = /^ {0,3}(?<level>#{1,6})\s+(?<rest>.*?)(?:\s+#+)?\s*$/.exec(line)?.groups;
  if (heading) {
    const styles = heading.level === "#" ? [BOLD, UNDERLINE] : [BOLD];
    return { prefix: "", columns: 0, indent: "", rest: heading.rest ?? "", styles };
  }
  const quote = /^\s*(?<marks>(?:>\s?)+)(?<rest>.*)$/.exec(line)?.groups;
  if (quote) {
    const bars = "│ ".repeat((quote.marks ?? "").replace(/\s/g, "").length);
    return { ...plainBlock(quote.rest ?? "", styled(bars, [DIM]), bars), styles: [DIM] };
  }
  const item = ITEM.exec(line)?.groups;
  if (item?.rest !== undefined) {
    const bullet = /\d/.test(item.marker ?? "") ? item.marker : "•";
    const box = item.task === undefined ? "" : /x/i.test(item.task) ? "☑ " : "☐ ";
    const start = `${(item.blanks ?? "").replace(/\t/g, "    ")}${bullet} ${box}`;
    return plainBlock(item.rest, start, " ".repeat(columnsOf(start)));
  }
  const blanks = /^\s*/.exec(line)?.[0].replace(/\t/g, "    ") ?? "";
  return plainBlock(line.trimStart(), line.trim() === "" ? "" : blanks, blanks);
}

function plainBlock(rest: string, prefix: string, indent: string): Block {
  return { prefix, columns: columnsOf(indent), indent, rest, styles: [] };
}

const rule = (width: number): string => "─".repeat(Math.min(width, 60));

/** Renders a whole text at once. */
export function renderMarkdown(text: string, width: number): string {
  const markdown = new Markdown({ width: () => width });
  return markdown.push(text) + markdown.end();
}
