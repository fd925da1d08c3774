/** The history of a board: each change with time, author and the previous rows, so that it can be undone. */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import {
  type BoardChange,
  type BoardKey,
  type BoardRow,
  boardActions,
  boardSources,
  type ChangeBy,
  type RowChange,
} from "./board.ts";
import type { DatabaseConnection } from "./database.ts";
import { type RowName, removeRow, writeRow } from "./rows.ts";

/** Maximum number of changes stored per board. The oldest are deleted. */
const MAX_CHANGES = 40;

interface Recording {
  readonly key: BoardKey;
  readonly by: ChangeBy & { readonly restores?: BoardChange };
  readonly at: string;
  readonly before: readonly BoardRow[];
  readonly after: readonly BoardRow[];
}

/**
 * Writes the differing rows and records the change. Returns `undefined` if nothing differs. Call inside a transaction.
 */
export function recordChange(connection: DatabaseConnection, what: Recording): BoardChange | undefined {
  const { key, by, at } = what;
  const rows = differences(what.before, what.after);
  if (rows.length === 0) return undefined;
  for (const { before, after } of rows) {
    if (after) writeRow(connection, key, after);
    else if (before) removeRow(connection, key, before);
  }
  const { action, actor, sessionId = null, restores } = by;
  const sql =
    "INSERT INTO board_changes (repository, branch, at, action, actor, session_id, restores, rows) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
  const values = [key.repository, key.branch, at, action, actor, sessionId, restores?.id ?? null, JSON.stringify(rows)];
  const id = Number(connection.prepare(sql).run(...values).lastInsertRowid);
  if (restores) {
    const mark = connection.prepare("UPDATE board_changes SET undone_by = ? WHERE id = ?");
    mark.run(id, restores.id);
    // Undoing an undo restores the first change.
    if (restores.restores !== undefined) mark.run(null, restores.restores);
  }
  connection
    .prepare(
      "DELETE FROM board_changes WHERE repository = ? AND branch = ? AND id NOT IN (SELECT id FROM board_changes WHERE repository = ? AND branch = ? ORDER BY id DESC LIMIT ?)",
    )
    .run(key.repository, key.branch, key.repository, key.branch, MAX_CHANGES);
  return {
    id,
    at,
    action,
    actor,
    rows,
    ...defined({ sessionId: by.sessionId, restores: restores?.id }),
  };
}

/** Returns the rows whose texts differ, or that exist on one side only. */
function differences(before: readonly BoardRow[], after: readonly BoardRow[]): readonly RowChange[] {
  const left = new Map(before.map((row) => [nameOf(row), row]));
  const right = new Map(after.map((row) => [nameOf(row), row]));
  const names = [...new Set([...left.keys(), ...right.keys()])].sort();
  return names.flatMap((name) => {
    const change = { before: left.get(name) ?? null, after: right.get(name) ?? null };
    return isSameText(change.before, change.after) ? [] : [change];
  });
}

/** Returns the changes, newest first. */
export function changesOf(connection: DatabaseConnection, { repository, branch }: BoardKey): readonly BoardChange[] {
  return connection
    .prepare("SELECT * FROM board_changes WHERE repository = ? AND branch = ? ORDER BY id DESC")
    .all(repository, branch)
    .map((row) => ({
      id: Number(row.id),
      at: String(row.at),
      action: boardActions.find((known) => known === row.action) ?? "add",
      actor: String(row.actor),
      ...(row.session_id !== null && { sessionId: String(row.session_id) }),
      ...(row.restores !== null && { restores: Number(row.restores) }),
      ...(row.undone_by !== null && { undoneBy: Number(row.undone_by) }),
      rows: parseRows(String(row.rows)),
    }));
}

/** Returns the change to undo and the rows as they were before it. Throws when it cannot be undone. */
export function restoredRows(
  changes: readonly BoardChange[],
  rows: readonly BoardRow[],
  id: number | undefined,
): { target: BoardChange; rows: readonly BoardRow[] } {
  const target =
    id === undefined
      ? changes.find(({ action, undoneBy }) => action !== "restore" && undoneBy === undefined)
      : changes.find((change) => change.id === id);
  if (!target) {
    const problem = id === undefined ? "There is no change to undo." : `There is no change ${id} of this board.`;
    throw new TroupeError("usage", problem, { hint: "See: troupe board changes" });
  }
  if (target.undoneBy !== undefined) {
    const hint = `To apply it again: troupe board restore ${target.undoneBy}`;
    throw new TroupeError("usage", `Change ${target.id} was undone by change ${target.undoneBy}.`, { hint });
  }
  const now = new Map(rows.map((row) => [nameOf(row), row]));
  for (const { before, after } of target.rows) {
    const name = (after ?? before)?.name ?? "";
    const current = now.get(nameOf(after ?? before)) ?? null;
    if (!isSameText(current, after)) throw changedSince(target, name, changes);
    if (!before) now.delete(nameOf(after));
    // The counts stay current. Everything else is exactly as before the change.
    else now.set(nameOf(before), { ...before, ...(current && { readCount: current.readCount, count: current.count }) });
  }
  return { target, rows: [...now.values()] };
}

/** Removes a row from all changes and returns how many entries were removed. Deletes a change with no other rows. */
export function wipeChanges(connection: DatabaseConnection, key: BoardKey, row: RowName): number {
  let wiped = 0;
  for (const { id, rows } of changesOf(connection, key)) {
    const others = rows.filter(({ before, after }) => nameOf(after ?? before) !== nameOf(row));
    if (others.length === rows.length) continue;
    wiped += rows.length - others.length;
    if (others.length === 0) connection.prepare("DELETE FROM board_changes WHERE id = ?").run(id);
    else connection.prepare("UPDATE board_changes SET rows = ? WHERE id = ?").run(JSON.stringify(others), id);
  }
  return wiped;
}

const nameOf = (row: RowName | null): string => `${row?.src}/${row?.name}`;

function isSameText(one: BoardRow | null, other: BoardRow | null): boolean {
  return one?.description === other?.description && one?.content === other?.content;
}

function changedSince({ id }: BoardChange, name: string, changes: readonly BoardChange[]): TroupeError {
  const later = changes.findLast(
    (change) =>
      change.id > id && change.rows.some(({ before, after }) => before?.name === name || after?.name === name),
  );
  const hint = later ? `Undo the later change first: troupe board restore ${later.id}` : "See: troupe board changes";
  return new TroupeError("usage", `Change ${id} cannot be undone: ${name} was changed after it.`, { hint });
}

const Row = z.object({
  src: z.enum(boardSources),
  name: z.string(),
  description: z.string(),
  content: z.string(),
  readCount: z.number(),
  count: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
const Rows = z.array(z.object({ before: Row.nullable(), after: Row.nullable() }));

function parseRows(text: string): readonly RowChange[] {
  return Rows.parse(JSON.parse(text));
}
