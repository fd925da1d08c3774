/** Requests to the database process, its replies, and the state that its parts share. */
import type * as Sqlite from "@photostructure/sqlite";

export interface DatabaseRequest {
  /** "store" is the read-only index of all sessions. */
  readonly database: "session" | "store";
  readonly path: string;
  /** For the store: only sessions of this repository are visible. Without it all are. */
  readonly scope?: StoreScope;
  /** Executed first; its result is not reported. */
  readonly schema: string;
  readonly statements: readonly {
    readonly sql: string;
    readonly verb: string;
    readonly parameters?: readonly string[];
  }[];
  /** Reports whether one of these tables was written to. */
  readonly watched: readonly string[];
  readonly limits: DatabaseLimits;
}

/** Identifies a repository by its location, because the name of its remote is taken from its own configuration. */
export interface StoreScope {
  readonly cwd: string;
  readonly gitRoot?: string;
}

export interface DatabaseLimits {
  readonly rows: number;
  readonly characters: number;
  readonly valueCharacters: number;
  readonly countedRows: number;
  readonly valueBytes: number;
  readonly memoryBytes: number;
  readonly pages: number;
}

export interface StatementResult {
  readonly verb: string;
  /** The first kind of write, for a statement that begins with WITH. */
  readonly wrote: "insert" | "update" | "delete" | undefined;
  readonly changes: number;
  readonly lastRowId: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
  /** Number of omitted rows; counting stops at a limit. */
  readonly leftOut: number;
  readonly isCountCut: boolean;
  /** Number of past sessions that the store has not indexed yet. */
  readonly unread?: number;
  /** Number of older sessions of this repository that could not be searched. */
  readonly older?: number;
}

export type DatabaseReply =
  | { readonly ok: true; readonly results: readonly StatementResult[]; readonly touchedWatched: boolean }
  | { readonly ok: false; readonly message: string; readonly statement: number; readonly isUndone: boolean };

/** An open database, with the state of the request that uses it. */
export interface OpenDatabase {
  readonly connection: Sqlite.DatabaseSyncInstance;
  /** The first kind of write in the current statement. */
  wrote: StatementResult["wrote"];
  hasWritten: boolean;
  /** Tables that the request has written to, in lower case. */
  touched: Set<string>;
  /** The reason why SQLite refused the current statement. */
  refused: string | undefined;
  /** Number of sessions that a copy left out. */
  older?: number;
}
