/** Reads and writes rows of the table. */
import { TroupeError } from "../../protocol/errors.ts";
import {
  type BoardEntry,
  type BoardKey,
  type BoardRow,
  type BoardSource,
  type BoardText,
  boardLimits,
} from "./board.ts";
import type { DatabaseConnection } from "./database.ts";

const COLUMNS = "src, name, description, content, read_count, count, created_at, updated_at";
const OF_KEY = "repository = ? AND branch = ?";

/** Returns the board's rows, sorted by source and name. */
export function rowsOf(connection: DatabaseConnection, { repository, branch }: BoardKey): readonly BoardRow[] {
  const sql = `SELECT ${COLUMNS} FROM dynamic_context_items WHERE ${OF_KEY} ORDER BY src, name`;
  return connection
    .prepare(sql)
    .all(repository, branch)
    .map((row) => ({
      src: row.src === "user" ? "user" : "agent",
      name: String(row.name),
      description: String(row.description),
      content: String(row.content),
      readCount: Number(row.read_count),
      count: Number(row.count),
      createdAt: String(row.created_at),
      updatedAt: String(row.updated_at),
    }));
}

export function writeRow(connection: DatabaseConnection, { repository, branch }: BoardKey, row: BoardRow): void {
  const sql = `INSERT OR REPLACE INTO dynamic_context_items (repository, branch, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
  const { src, name, description, content, readCount, count, createdAt, updatedAt } = row;
  const values = [src, name, description, content, readCount, count, createdAt, updatedAt];
  connection.prepare(sql).run(repository, branch, ...values);
}

/** Deletes a row and returns the number of deleted rows. */
export function removeRow(connection: DatabaseConnection, { repository, branch }: BoardKey, row: RowName): number {
  const sql = `DELETE FROM dynamic_context_items WHERE ${OF_KEY} AND src = ? AND name = ?`;
  return Number(connection.prepare(sql).run(repository, branch, row.src, row.name).changes);
}

export interface RowName {
  readonly src: BoardSource;
  readonly name: string;
}

/**
 * Returns the rows with this text added or replaced, or the same array if nothing changes. Throws when the board is
 * full.
 */
export function withRow(
  rows: readonly BoardRow[],
  { src, name, description, content, at }: BoardText & Pick<BoardEntry, "src"> & { readonly at: string },
): readonly BoardRow[] {
  const known = rows.find((row) => row.src === src && row.name === name);
  if (known?.description === description && known.content === content) return rows;
  if (!known && rows.length >= boardLimits.rows) throw isFull();
  const row = { src, name, description, content, readCount: 0, count: 0, createdAt: at, updatedAt: at };
  if (!known) return [...rows, row];
  const { readCount, count, createdAt } = known;
  return rows.map((one) => (one === known ? { ...row, readCount, count, createdAt } : one));
}

function isFull(): TroupeError {
  const problem = `The board is full: it holds ${boardLimits.rows} items, and this would be a new one.`;
  return new TroupeError("usage", problem, { hint: "Prune an item first, or overwrite one." });
}
