/**
 * The context board: a few notes about one repository and branch that agents write for later sessions. Limits keep it
 * small. Every change is stored with the previous texts. Models read its texts as data, never as instructions. This
 * folder has the board's database, its rules and its text for prompts.
 */
import type { Disk } from "../../lib/node/disk.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";

/** Identifies a board. */
export interface BoardKey {
  readonly repository: string;
  readonly branch: string;
}

export const boardSources = ["agent", "user"] as const;
/** The writer of a row. Agents change and remove only rows of their own source. */
export type BoardSource = (typeof boardSources)[number];

/** A row without its text, as lists and prompts show it. */
export interface BoardEntry {
  readonly src: BoardSource;
  readonly name: string;
  readonly description: string;
  /** Number of times the text was read. */
  readonly readCount: number;
  /** Number of new sessions that had the row on their board. */
  readonly count: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface BoardRow extends BoardEntry {
  readonly content: string;
}

/** The input for a row. */
export interface BoardText {
  readonly name: string;
  readonly description: string;
  readonly content: string;
}

export const boardLimits = {
  /** Maximum number of rows on one board, of both sources. */
  rows: 25,
  /** From this number of rows on, a consolidation prunes … */
  warnAt: 23,
  /** … down to this many. */
  pruneTo: 18,
  /** The largest share of agents' rows that one consolidation may drop. */
  dropShare: 0.5,
  name: 64,
  description: 200,
  content: 4000,
} as const;

/** One row before and after a change. `null` means that there was no row. */
export interface RowChange {
  readonly before: BoardRow | null;
  readonly after: BoardRow | null;
}

export const boardActions = ["add", "prune", "consolidate", "restore"] as const;

export interface BoardChange {
  readonly id: number;
  readonly at: string;
  readonly action: (typeof boardActions)[number];
  /** `person` or an agent's name. */
  readonly actor: string;
  readonly sessionId?: string;
  /** The change that this one undid. */
  readonly restores?: number;
  /** The change that undid this one. */
  readonly undoneBy?: number;
  readonly rows: readonly RowChange[];
}

/** The author of a change, and the action it is part of. */
export interface ChangeBy {
  readonly action: BoardChange["action"];
  readonly actor: string;
  readonly sessionId?: string;
}

/** Every method throws only `TroupeError`. Several processes may use one board at once. */
export interface Board {
  readonly key: BoardKey;
  /** Returns the entries, sorted by source and name. */
  list(): Promise<readonly BoardEntry[]>;
  /** Returns the rows with their texts, without counting a read. */
  rows(): Promise<readonly BoardRow[]>;
  /** Returns one row with its text and counts a read. */
  read(src: BoardSource, name: string): Promise<BoardRow | undefined>;
  /** Counts a new session for every row of the board. */
  expose(): Promise<void>;
  /** Adds a row of this source or replaces its text. Throws when a new row would exceed the limit. */
  add(src: BoardSource, text: BoardText, by: ChangeBy): Promise<"added" | "replaced" | "unchanged">;
  /** Removes a row. Returns `undefined` if there is none. */
  prune(src: BoardSource, name: string, by: ChangeBy): Promise<BoardChange | undefined>;
  /**
   * Replaces the current rows with the result of `next`, in one transaction. Returns `undefined` if nothing changes.
   */
  change(by: ChangeBy, next: (rows: readonly BoardRow[]) => readonly BoardRow[]): Promise<BoardChange | undefined>;
  /** Returns the changes, newest first. */
  changes(): Promise<readonly BoardChange[]>;
  /** Undoes this change (default: the last one that is not undone). Throws if its rows changed since. */
  restore(by: Pick<ChangeBy, "actor">, id?: number): Promise<BoardChange>;
  /** Deletes a row and its entries in all changes. Returns the number of rows and entries deleted. */
  purge(src: BoardSource, name: string): Promise<number>;
  close(): Promise<void>;
}

export interface BoardPorts {
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly redactor: Redactor;
}
