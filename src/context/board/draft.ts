/**
 * The draft that a consolidation works on. It is applied in one transaction at the end, or not at all. Applying it
 * prunes a nearly full board, but retains a share of the agents' earlier rows.
 */
import { TroupeError } from "../../protocol/errors.ts";
import { type BoardRow, type BoardText, boardLimits } from "./board.ts";
import { withRow } from "./rows.ts";

export interface BoardDraft {
  /** Returns the rows with the draft's changes. */
  rows(): readonly BoardRow[];
  add(text: BoardText, at: string): "added" | "replaced" | "unchanged";
  /** Removes an agent's row. Returns false if there is none. Throws when too many earlier rows would be dropped. */
  prune(name: string): boolean;
  /** Applies the draft to the board's current rows. Throws when both changed the same row. */
  finish(current: readonly BoardRow[]): Finished;
}

interface Finished {
  readonly rows: readonly BoardRow[];
  /** Names of rows that were dropped to keep the board small, in addition to the draft's own changes. */
  readonly prunedByRule: readonly string[];
}

export function draftOf(snapshot: readonly BoardRow[]): BoardDraft {
  const before = new Map(snapshot.filter(isOfAgent).map((row) => [row.name, row]));
  const mayDrop = mostDrops(before.size);
  let rows = snapshot;
  const find = (name: string) => rows.find((row) => row.name === name && isOfAgent(row));
  const dropped = (): number => [...before.keys()].filter((name) => !find(name)).length;
  return {
    rows: () => rows,
    add(text, at) {
      const outcome = find(text.name) ? "replaced" : "added";
      const next = withRow(rows, { ...text, src: "agent", at });
      if (next === rows) return "unchanged";
      // A row that was pruned and added again retains its counts and creation time.
      const former = outcome === "added" ? before.get(text.name) : undefined;
      rows = former ? next.map((row) => (row.name === text.name && isOfAgent(row) ? keeping(former, row) : row)) : next;
      return outcome;
    },
    prune(name) {
      const row = find(name);
      if (!row) return false;
      if (before.has(name) && dropped() >= mayDrop) throw tooMany(mayDrop, before.size);
      rows = rows.filter((one) => one !== row);
      return true;
    },
    finish(current) {
      const touched = [...new Set([...before.keys(), ...rows.filter(isOfAgent).map(({ name }) => name)])].filter(
        (name) => !isSame(before.get(name), find(name)),
      );
      const now = new Map(current.filter(isOfAgent).map((row) => [row.name, row]));
      const clash = touched.find((name) => !isSame(now.get(name), before.get(name)));
      if (clash !== undefined) throw changedMeanwhile(clash);
      const untouched = current.filter((row) => !isOfAgent(row) || !touched.includes(row.name));
      const written = touched.flatMap((name) => find(name) ?? []).map((row) => keeping(now.get(row.name), row));
      return small([...untouched, ...written], { before: current, touched: new Set(touched) });
    },
  };
}

/** Returns the share of agents' rows that may be dropped, at least one. */
export function mostDrops(count: number): number {
  return Math.max(1, Math.floor(count * boardLimits.dropShare));
}

/**
 * Prunes a board that was or would be nearly full. Drops the least-read rows first, among those the oldest, and rows of
 * this draft last. User rows stay, and so does the share that no consolidation may drop.
 */
function small(
  rows: readonly BoardRow[],
  { before, touched }: { before: readonly BoardRow[]; touched: ReadonlySet<string> },
): Finished {
  if (Math.max(before.length, rows.length) < boardLimits.warnAt) return { rows, prunedByRule: [] };
  const known = new Set(before.filter(isOfAgent).map(({ name }) => name));
  const kept = new Set(rows.filter(isOfAgent).map(({ name }) => name));
  const dropsLeft = mostDrops(known.size) - [...known].filter((name) => !kept.has(name)).length;
  const surplus = Math.max(0, rows.length - boardLimits.pruneTo);
  const worth = (one: BoardRow, other: BoardRow): number =>
    Number(touched.has(one.name)) - Number(touched.has(other.name)) ||
    one.readCount - other.readCount ||
    one.updatedAt.localeCompare(other.updatedAt) ||
    one.name.localeCompare(other.name);
  const old = rows.filter((row) => isOfAgent(row) && known.has(row.name)).sort(worth);
  const fresh = rows.filter((row) => isOfAgent(row) && !known.has(row.name)).reverse();
  const gone = new Set([...old.slice(0, Math.max(0, dropsLeft)), ...fresh].slice(0, surplus));
  return { rows: rows.filter((row) => !gone.has(row)), prunedByRule: [...gone].map(({ name }) => name) };
}

const isOfAgent = ({ src }: BoardRow): boolean => src === "agent";

const isSame = (one: BoardRow | undefined, other: BoardRow | undefined): boolean =>
  one?.description === other?.description && one?.content === other?.content;

/** Returns the row with the counts and creation time of its former version. */
function keeping(former: BoardRow | undefined, row: BoardRow): BoardRow {
  if (!former) return row;
  const { readCount, count, createdAt } = former;
  return { ...row, readCount, count, createdAt };
}

function tooMany(most: number, of: number): TroupeError {
  const problem = `One consolidation can remove at most ${most} of the ${of} items that agents wrote.`;
  return new TroupeError("usage", problem, { hint: "Keep the other items, or overwrite them." });
}

function changedMeanwhile(name: string): TroupeError {
  const problem = `This consolidation was not applied: ${name} was changed while it ran.`;
  return new TroupeError("failed", problem, { hint: "Run it again: troupe board consolidate." });
}
