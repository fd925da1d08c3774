/** Opens the board of a repository and branch. */

import { TroupeError } from "../../protocol/errors.ts";
import {
  type Board,
  type BoardChange,
  type BoardEntry,
  type BoardKey,
  type BoardPorts,
  type BoardRow,
  boardLimits,
  type ChangeBy,
} from "./board.ts";
import { changesOf, recordChange, restoredRows, wipeChanges } from "./changes.ts";
import { type BoardDatabase, type BoardDatabaseOptions, boardDatabase, type DatabaseConnection } from "./database.ts";
import { removeRow, rowsOf, withRow } from "./rows.ts";
import { requireText } from "./text.ts";

export interface OpenBoardOptions extends BoardPorts, BoardDatabaseOptions {
  readonly key: BoardKey;
}

/** Returns the board. The file is opened, and created if missing, by the first call. */
export function openBoard(options: OpenBoardOptions): Board {
  const { key, redactor, stamp } = options;
  const database = boardDatabase(options);
  const now = (): string => new Date(stamp.now()).toISOString();
  const ofKey = [key.repository, key.branch];

  const change: Board["change"] = (by, next) =>
    database.write((connection) => {
      const before = rowsOf(connection, key);
      return recordChange(connection, { key, by, at: now(), before, after: next(before) });
    });

  return {
    key,
    list: () => database.read((connection) => rowsOf(connection, key).map(withoutText)),
    rows: () => database.read((connection) => rowsOf(connection, key)),
    read: (src, name) =>
      database.write((connection) => {
        const where = "repository = ? AND branch = ? AND src = ? AND name = ?";
        const sql = `UPDATE dynamic_context_items SET read_count = read_count + 1 WHERE ${where}`;
        connection.prepare(sql).run(...ofKey, src, name);
        return rowsOf(connection, key).find((row) => row.src === src && row.name === name);
      }),
    async expose() {
      const sql = "UPDATE dynamic_context_items SET count = count + 1 WHERE repository = ? AND branch = ?";
      await database.write((connection) => connection.prepare(sql).run(...ofKey));
    },
    async add(src, given, by) {
      const text = requireText(given, { redactor, secrets: src === "user" ? "refused" : "masked" });
      let outcome: "added" | "replaced" = "added";
      const done = await change(by, (rows) => {
        outcome = rows.some((row) => row.src === src && row.name === text.name) ? "replaced" : "added";
        return withRow(rows, { ...text, src, at: now() });
      });
      return done === undefined ? "unchanged" : outcome;
    },
    prune: (src, name, by) => change(by, (rows) => rows.filter((row) => row.src !== src || row.name !== name)),
    change,
    changes: () => database.read((connection) => changesOf(connection, key)),
    restore: ({ actor }, id) =>
      database.write((connection) => restoreChange(connection, { key, actor, id, at: now() })),
    async purge(src, name) {
      const row = { src, name };
      const count = await database.write((connection) => {
        return removeRow(connection, key, row) + wipeChanges(connection, key, row);
      });
      // The WAL still holds deleted text until it is checkpointed into the file.
      await database.read((connection) => connection.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
      return count;
    },
    close: () => database.close(),
  };
}

/** Undoes a change and records that. Throws when the board would have too many rows or stays the same. */
function restoreChange(
  connection: DatabaseConnection,
  { key, actor, id, at }: { key: BoardKey; actor: ChangeBy["actor"]; id: number | undefined; at: string },
): BoardChange {
  const before = rowsOf(connection, key);
  const { target, rows } = restoredRows(changesOf(connection, key), before, id);
  if (rows.length > boardLimits.rows) throw wouldBeFull(rows.length);
  const by = { action: "restore" as const, actor, restores: target };
  const done = recordChange(connection, { key, by, at, before, after: rows });
  if (done === undefined)
    throw new TroupeError("usage", `There is nothing to undo: change ${target.id} has no effect now.`);
  return done;
}

function wouldBeFull(count: number): TroupeError {
  const problem = `The change cannot be undone: the board would have ${count} items, and the limit is ${boardLimits.rows}.`;
  return new TroupeError("usage", problem, { hint: "Prune some items first: troupe board prune <name>." });
}

function withoutText({ content: _, ...entry }: BoardRow): BoardEntry {
  return entry;
}

/** Returns all boards with their number of rows. */
export async function listBoards(
  options: BoardDatabaseOptions,
): Promise<readonly (BoardKey & { readonly rows: number })[]> {
  const database: BoardDatabase = boardDatabase(options);
  const sql =
    "SELECT repository, branch, count(*) AS rows FROM dynamic_context_items GROUP BY repository, branch ORDER BY 1, 2";
  try {
    return await database.read((connection: DatabaseConnection) =>
      connection
        .prepare(sql)
        .all()
        .map((row) => ({ repository: String(row.repository), branch: String(row.branch), rows: Number(row.rows) })),
    );
  } finally {
    await database.close();
  }
}
