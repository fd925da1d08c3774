/**
 * The context board: a few notes about one repository and branch that agents keep for later sessions. It stays small by
 * rule, every change of its texts is kept with what was there before, and what stands on it is data, never an order.
 */
import type { Disk } from "../../lib/node/disk.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";

/** Whose board it is. */
export interface BoardKey {
  readonly repository: string;
  readonly branch: string;
}

export const boardSources = ["agent", "user"] as const;
/** Who wrote a row; agents change and remove only their own. */
export type BoardSource = (typeof boardSources)[number];

/** A row without its text: what lists and prompts show. */
export interface BoardEntry {
  readonly src: BoardSource;
  readonly name: string;
  readonly description: string;
  /** How often its text was fetched. */
  readonly readCount: number;
  /** How many new sessions had it on their board. */
  readonly count: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface BoardRow extends BoardEntry {
  readonly content: string;
}

/** What a writer gives. */
export interface BoardText {
  readonly name: string;
  readonly description: string;
  readonly content: string;
}

export const boardLimits = {
  /** Rows on one board, of both sources. */
  rows: 25,
  /** From here on a consolidation has to make room … */
  warnAt: 23,
  /** … down to this many. */
  pruneTo: 18,
  /** No consolidation drops more than this of what agents wrote before it. */
  dropShare: 0.5,
  name: 64,
  description: 200,
  content: 4000,
} as const;

/** What became of one row in a change; null where there was none. */
export interface RowChange {
  readonly before: BoardRow | null;
  readonly after: BoardRow | null;
}

export const boardActions = ["add", "prune", "consolidate", "restore"] as const;

export interface BoardChange {
  readonly id: number;
  readonly at: string;
  readonly action: (typeof boardActions)[number];
  /** `person`, or the name of an agent. */
  readonly actor: string;
  readonly sessionId?: string;
  /** The change that this one took back. */
  readonly restores?: number;
  /** The change that took this one back. */
  readonly undoneBy?: number;
  readonly rows: readonly RowChange[];
}

/** Who changes something, and as part of what. */
export interface ChangeBy {
  readonly action: BoardChange["action"];
  readonly actor: string;
  readonly sessionId?: string;
}

/** All that fails is a `TroupeError`. Several processes can use one board at once. */
export interface Board {
  readonly key: BoardKey;
  /** By source and name. */
  list(): Promise<readonly BoardEntry[]>;
  /** With their texts; counts nothing. */
  rows(): Promise<readonly BoardRow[]>;
  /** One row with its text, counted as a reading. */
  read(src: BoardSource, name: string): Promise<BoardRow | undefined>;
  /** A new session has this board. */
  expose(): Promise<void>;
  /** Writes a row of this source, or another text over it. A new row on a full board is refused. */
  add(src: BoardSource, text: BoardText, by: ChangeBy): Promise<"added" | "replaced" | "unchanged">;
  /** Takes a row away; undefined when there is none. */
  prune(src: BoardSource, name: string, by: ChangeBy): Promise<BoardChange | undefined>;
  /** From what stands there to what shall stand there, as one transaction; undefined when nothing changes. */
  change(by: ChangeBy, next: (rows: readonly BoardRow[]) => readonly BoardRow[]): Promise<BoardChange | undefined>;
  /** Newest first. */
  changes(): Promise<readonly BoardChange[]>;
  /** Takes back the last change that stands, or this one, unless its rows changed since. */
  restore(by: Pick<ChangeBy, "actor">, id?: number): Promise<BoardChange>;
  /** A row and every trace of it in the changes; how many rows and changes that were. */
  purge(src: BoardSource, name: string): Promise<number>;
  close(): Promise<void>;
}

export interface BoardPorts {
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly redactor: Redactor;
}
