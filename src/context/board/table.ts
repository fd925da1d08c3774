/** The board's text for models. The table lists the rows without their texts. */
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import type { BoardEntry } from "./board.ts";
import hint from "./table.md";

const COLUMNS = ["src", "name", "description", "read_count", "count"];

/** Returns the element with the table. An empty board gives an empty table. */
export function boardTable(entries: readonly BoardEntry[]): string {
  const rows = entries.map(({ src, name, description, readCount, count }) =>
    line([src, name, cell(description), String(readCount), String(count)]),
  );
  const table = [line(COLUMNS), line(COLUMNS.map(() => "---")), ...rows].join("\n");
  return wrapInTag("dynamic_context_board", {}, `${table}\n\n${hint.trim()}`);
}

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

const cell = (text: string): string =>
  quoted(text).replace(/\s+/g, " ").replaceAll("\\", "\\\\").replaceAll("|", "\\|");

/** Returns one row with its text, quoted as data. */
export function boardItem({
  src,
  name,
  content,
}: Pick<BoardEntry, "src" | "name"> & { readonly content: string }): string {
  return wrapInTag("board_item", { src, name }, quoted(content));
}
