import type { DatabaseSyncInstance } from "@photostructure/sqlite";

export interface SearchQuery {
  /** All of them must be in a turn, a checkpoint or a path; each may be the beginning of a word. */
  readonly words: string;
  readonly limit?: number;
  /** `owner/name`; only sessions of this repository. */
  readonly repository?: string;
  /** Only sessions that worked in this folder or below it. */
  readonly cwd?: string;
  /** ISO 8601; only what was said then or later. */
  readonly since?: string;
}

/** One place in one session. */
export interface Found {
  readonly sessionId: string;
  readonly source: "turn" | "checkpoint" | "file";
  /** Of a turn or a file the message of the user, counted from 1; of a checkpoint its number. */
  readonly number: number;
  /** The words around what was found, which stands between » and «. */
  readonly snippet: string;
  readonly timestamp: string;
  readonly cwd: string;
  readonly repository?: string;
  readonly branch?: string;
  /** The name of the session, or else its first words. */
  readonly title?: string;
}

const MAX_FOUND = 1000;
const SNIPPET_WORDS = 24;
/** Words that are everywhere: only among so many of the newest places the best are chosen, or it would take a second. */
const MAX_RANKED = 1000;

/** Best first. */
export function searchIndex(database: DatabaseSyncInstance, query: SearchQuery): Found[] {
  const match = matchOf(query.words);
  if (match === "") return [];
  const conditions: string[] = [];
  const values: string[] = [];
  const only = (condition: string, ...given: readonly string[]): void => {
    conditions.push(`AND ${condition}`);
    values.push(...given);
  };
  const { repository, cwd, since, limit = 20 } = query;
  if (repository !== undefined) only("s.repository = ? COLLATE NOCASE", repository);
  if (cwd !== undefined) only("(s.cwd = ? OR substr(s.cwd, 1, length(?)) = ?)", cwd, belowOf(cwd), belowOf(cwd));
  if (since !== undefined) only(`${TIME} >= ?`, since);
  const where = `WHERE search_index MATCH ? ${conditions.join(" ")}`;
  const from = `FROM search_index i ${conditions.length === 0 ? "" : JOINED} ${where}`;
  const candidates = database
    .prepare(`SELECT i.rowid AS id ${from} ORDER BY i.rowid DESC LIMIT ${MAX_RANKED}`)
    .all(match, ...values);
  const oldest = candidates.at(-1)?.id;
  if (oldest === undefined) return [];
  return database
    .prepare(
      `SELECT i.session_id, i.source_type, i.source_id, snippet(search_index, 0, '»', '«', '…', ${SNIPPET_WORDS}) AS snippet,
         ${TIME} AS timestamp, s.cwd, s.repository, s.branch, s.summary
       FROM search_index i ${JOINED} ${where} AND i.rowid >= ? ORDER BY i.rank LIMIT ?`,
    )
    .all(match, ...values, Number(oldest), Math.max(0, Math.min(limit, MAX_FOUND)))
    .map(foundOf);
}

const JOINED = `JOIN sessions s ON s.id = i.session_id
  LEFT JOIN turns t ON i.source_type = 'turn' AND t.session_id = i.session_id AND t.turn_index = i.source_id
  LEFT JOIN checkpoints c
    ON i.source_type = 'checkpoint' AND c.session_id = i.session_id AND c.checkpoint_number = i.source_id
  LEFT JOIN session_files f
    ON i.source_type = 'file' AND f.session_id = i.session_id AND f.file_path = i.content AND f.search_id = i.rowid`;

const TIME = "coalesce(t.timestamp, c.created_at, f.first_seen_at, s.updated_at)";

/** Words as they are typed, never the language of queries: whatever stands in them, it is looked for. */
function matchOf(words: string): string {
  const terms = words.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return terms.map((term) => `"${term.replaceAll('"', '""')}"*`).join(" ");
}

const belowOf = (folder: string): string => (folder.endsWith("/") ? folder : `${folder}/`);

function foundOf(row: Record<string, unknown>): Found {
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const [repository, branch, title] = [text(row.repository), text(row.branch), text(row.summary)];
  return {
    sessionId: String(row.session_id),
    source: String(row.source_type) as Found["source"],
    number: Number(row.source_id),
    snippet: String(row.snippet),
    timestamp: String(row.timestamp),
    cwd: String(row.cwd),
    ...(repository !== undefined && { repository }),
    ...(branch !== undefined && { branch }),
    ...(title !== undefined && { title }),
  };
}
