/** The board as models see it: what there is, never the texts themselves. */
import { quoted, wrapped } from "../../lib/quoting.ts";
import type { BoardEntry } from "./board.ts";
import hint from "./table.md";

const COLUMNS = ["src", "name", "description", "read_count", "count"];

/** The element with its table. An empty board is an empty table, so that nobody wonders. */
export function boardTable(entries: readonly BoardEntry[]): string {
  const rows = entries.map(({ src, name, description, readCount, count }) =>
    line([src, name, cell(description), String(readCount), String(count)]),
  );
  const table = [line(COLUMNS), line(COLUMNS.map(() => "---")), ...rows].join("\n");
  return wrapped("dynamic_context_board", {}, `${table}\n\n${hint.trim()}`);
}

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

const cell = (text: string): string =>
  quoted(text).replace(/\s+/g, " ").replaceAll("\\", "\\\\").replaceAll("|", "\\|");

/** One row with its text, as data. */
export function boardItem({
  src,
  name,
  content,
}: Pick<BoardEntry, "src" | "name"> & { readonly content: string }): string {
  return wrapped("board_item", { src, name }, quoted(content));
}
