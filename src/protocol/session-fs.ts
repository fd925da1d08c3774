/**
 * Sessions that a client keeps: the files of each, and a database, reached by asking it. What is promised of durability is
 * then the client's promise; a call resolves when the client has answered.
 */

/** Files of sessions by whole texts. Each session has a tree of its own, so the same path means another file in another one. */
export interface FileProvider {
  /** Where a session's files lie in its tree. */
  readonly folder: string;
  readonly conventions: "posix" | "windows";
  /** Undefined when there is no such file. */
  read(sessionId: string, path: string): Promise<string | undefined>;
  write(sessionId: string, path: string, content: string): Promise<void>;
  /** Makes the file when there is none. */
  append(sessionId: string, path: string, content: string): Promise<void>;
  /** Undefined when there is nothing. */
  stat(sessionId: string, path: string): Promise<ProvidedEntry | undefined>;
  /** With those above it; content when it is there already. */
  makeFolder(sessionId: string, path: string): Promise<void>;
  /** Empty when there is no such folder. */
  list(sessionId: string, path: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>;
  /** A file, or a folder with what is in it. Content when there is nothing. */
  remove(sessionId: string, path: string): Promise<void>;
  /** What lies at `to` is replaced. */
  rename(sessionId: string, from: string, to: string): Promise<void>;
  /** Left out: sessions have their databases here. */
  readonly sqlite?: SqliteProvider;
}

export interface ProvidedEntry {
  readonly isFile: boolean;
  readonly size: number;
  /** As the provider writes it. */
  readonly modified: string;
}

export interface SqliteStatement {
  /** `exec` changes tables, `run` rows, `query` reads. */
  readonly queryType: "exec" | "run" | "query";
  readonly query: string;
  readonly params?: Readonly<Record<string, string>>;
}

export interface SqliteRows {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly rowsAffected: number;
  readonly lastInsertRowid?: number | undefined;
}

export interface SqliteProvider {
  query(sessionId: string, statement: SqliteStatement, signal?: AbortSignal): Promise<SqliteRows>;
  /** All of them or none. */
  transaction(
    sessionId: string,
    statements: readonly SqliteStatement[],
    signal?: AbortSignal,
  ): Promise<readonly SqliteRows[]>;
  /** Whether the session has a database already; asking makes none. */
  exists(sessionId: string): Promise<boolean>;
}
