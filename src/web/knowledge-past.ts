/** Remembered facts and the notes of the board as they were at an earlier moment, from the history that both keep. */
import type { BoardChange, BoardRow } from "../context/board/board.ts";
import { foldTransactions, type MemoryState } from "../context/memory/fold.ts";

/** Returns the facts after all changes up to this moment, which is an ISO time. */
export function factsAt({ transactions }: MemoryState, until: string): MemoryState {
  return foldTransactions(transactions.filter(({ at }) => at <= until));
}

/** Returns the rows before all changes that came after this moment. `changes` are those of the board, newest first. */
export function boardAt(
  rows: readonly BoardRow[],
  changes: readonly BoardChange[],
  until: string,
): { readonly rows: readonly BoardRow[]; readonly changes: readonly BoardChange[] } {
  const now = new Map(rows.map((row) => [nameOf(row), row]));
  for (const change of changes) {
    if (change.at <= until) break;
    for (const { before, after } of change.rows) {
      if (after) now.delete(nameOf(after));
      if (before) now.set(nameOf(before), before);
    }
  }
  const earlier = changes.filter(({ at }) => at <= until);
  const ids = new Set(earlier.map(({ id }) => id));
  return {
    rows: [...now.values()].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)),
    changes: earlier.map(({ undoneBy, ...change }) =>
      undoneBy !== undefined && ids.has(undoneBy) ? { ...change, undoneBy } : change,
    ),
  };
}

/** Returns the times at which a fact or a note changed, oldest first, each once. */
export function momentsOf(states: readonly MemoryState[], changes: readonly BoardChange[]): readonly string[] {
  const facts = states.flatMap(({ transactions }) => transactions.filter(({ action }) => action !== "used"));
  return [...new Set([...facts, ...changes].map(({ at }) => at))].sort();
}

const nameOf = ({ src, name }: Pick<BoardRow, "src" | "name">): string => `${src}/${name}`;
