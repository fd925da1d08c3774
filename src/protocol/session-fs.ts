/**
 * Sessions that a client stores: their files and a database, accessed by requests to it. Durability is then up to the
 * client. A call resolves when the client has answered.
 */

/**
 * Files of sessions, read and written as whole texts. Each session has its own tree: the same path is another file in
 * another session.
 */
export interface FileProvider {
  /** The folder of a session's files in its tree. */
  readonly folder: string;
  readonly conventions: "posix" | "windows";
  /** Returns undefined if there is no such file. */
  read(sessionId: string, path: string): Promise<string | undefined>;
  write(sessionId: string, path: string, content: string): Promise<void>;
  /** Creates the file if it does not exist. */
  append(sessionId: string, path: string, content: string): Promise<void>;
  /** Returns undefined if there is no such entry. */
  stat(sessionId: string, path: string): Promise<ProvidedEntry | undefined>;
  /** Creates the folder and its parents. Does nothing if it exists. */
  makeFolder(sessionId: string, path: string): Promise<void>;
  /** Returns an empty list if there is no such folder. */
  list(sessionId: string, path: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>;
  /** Removes a file, or a folder with its contents. Does nothing if there is no such entry. */
  remove(sessionId: string, path: string): Promise<void>;
  /** Replaces the entry at `to`. */
  rename(sessionId: string, from: string, to: string): Promise<void>;
  /** If absent, the databases of sessions are stored locally. */
  readonly sqlite?: SqliteProvider;
}

export interface ProvidedEntry {
  readonly isFile: boolean;
  readonly size: number;
  /** In the provider's format. */
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
  /** Applies all statements or none. */
  transaction(
    sessionId: string,
    statements: readonly SqliteStatement[],
    signal?: AbortSignal,
  ): Promise<readonly SqliteRows[]>;
  /** Whether the session has a database. Does not create one. */
  exists(sessionId: string): Promise<boolean>;
}
