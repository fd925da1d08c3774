/** Formats the board for users. Each entry stays on its own lines and cannot control the terminal. */
import {
  type BoardChange,
  type BoardEntry,
  type BoardKey,
  type BoardRow,
  boardLimits,
} from "../../context/board/board.ts";
import { plural, sanitise, sanitiseLine } from "../../lib/text.ts";

export function boardList(key: BoardKey, entries: readonly BoardEntry[]): string {
  const head = `${keyText(key)}: ${entries.length} of ${boardLimits.rows} items\n`;
  const width = Math.max(0, ...entries.map(({ name }) => name.length));
  const rows = entries.map(
    ({ src, name, description, readCount, count }) =>
      `  ${src.padEnd(5)}  ${name.padEnd(width)}  ${sanitiseLine(description)}  (${use({ readCount, count })})\n`,
  );
  return head + rows.join("");
}

export function allBoards(boards: readonly (BoardKey & { readonly rows: number })[]): string {
  if (boards.length === 0) return "There is nothing on any board.\n";
  return boards.map(({ rows, ...key }) => `${keyText(key)}: ${plural(rows, "item")}\n`).join("");
}

export function boardDetails(row: BoardRow): string {
  const facts = [
    ["name", row.name],
    ["written by", row.src === "user" ? "you" : "an agent"],
    ["about", row.description],
    ["used", use(row)],
    ["created", row.createdAt],
    ["changed", row.updatedAt],
  ];
  const lines = facts.map(([name = "", value = ""]) => `${name.padEnd(11)} ${sanitiseLine(value)}`);
  return `${lines.join("\n")}\n\n${sanitise(row.content)}\n`;
}

export function changeList(changes: readonly BoardChange[]): string {
  if (changes.length === 0) return "Nothing has changed yet.\n";
  return changes
    .map(({ id, at, action, actor, restores, undoneBy, rows }) => {
      const what = restores === undefined ? action : `${action} of ${restores}`;
      const mark = undoneBy === undefined ? "" : `  (undone by ${undoneBy})`;
      const names = rows.map(({ before, after }) => `${sign(before, after)}${(after ?? before)?.name}`).join(" ");
      return `${String(id).padStart(4)}  ${at.slice(0, 19).replace("T", " ")}  ${what} by ${actor}${mark}\n      ${names}\n`;
    })
    .join("");
}

/** Returns the removed and added lines. */
export function changeText({ rows }: Pick<BoardChange, "rows">): string {
  return rows
    .map(({ before, after }) => {
      const { src, name } = after ?? before ?? { src: "", name: "" };
      return [`${sign(before, after)} ${src}/${name}`, ...markedLines("-", before), ...markedLines("+", after)].join(
        "\n",
      );
    })
    .map((text) => `${text}\n`)
    .join("");
}

function markedLines(mark: string, row: BoardRow | null): string[] {
  if (row === null) return [];
  // A short note is its own description.
  const description = row.content.startsWith(row.description) ? [] : [row.description];
  return [...description, ...row.content.split("\n")].map((line) => `  ${mark} ${sanitiseLine(line)}`);
}

function sign(before: BoardRow | null, after: BoardRow | null): string {
  if (!before) return "+";
  return after ? "~" : "-";
}

const keyText = ({ repository, branch }: BoardKey): string => sanitiseLine(`${repository}, branch ${branch}`);

const use = ({ readCount, count }: Pick<BoardEntry, "readCount" | "count">): string =>
  `read ${readCount}×, on the board of ${plural(count, "session")}`;
