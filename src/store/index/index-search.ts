/** Full-text search in the session index. */

import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { defined } from "../../lib/defined.ts";

export interface IndexQuery {
  /** Words that must all occur in one turn, checkpoint or path. Each may be the beginning of a word. */
  readonly words: string;
  /** The maximum number of sessions (default: 20). */
  readonly limit?: number;
  /** `owner/name`; only sessions of this repository. */
  readonly repository?: string;
  /** Only sessions that worked in this folder or below it. */
  readonly cwd?: string;
  /** ISO 8601. Only matches from this time or later. */
  readonly since?: string;
}

/** One match in a session. */
export interface SearchMatch {
  readonly sessionId: string;
  readonly source: "turn" | "checkpoint" | "file";
  /** For a turn or a file: the number of the user's message, from 1. For a checkpoint: its number. */
  readonly number: number;
  /** The words around the match, with the match between » and «. */
  readonly snippet: string;
  readonly timestamp: string;
  readonly cwd: string;
  readonly repository?: string;
  readonly branch?: string;
  /** The session's name, or the beginning of its first prompt. */
  readonly title?: string;
}

const MAX_SESSIONS = 1000;
/** The maximum number of matches per session. */
const MAX_PLACES = 3;
const SNIPPET_WORDS = 24;
/**
 * The maximum number of matches that are ranked, newest first: ranking all matches of a very common word takes a
 * second.
 */
const MAX_RANKED = 1000;

/** Returns the best matches, grouped by session, best session first. Turns and checkpoints rank above file paths. */
export function searchIndex(database: DatabaseSyncInstance, query: IndexQuery): SearchMatch[] {
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
  const filter: Filter = { match, values, isJoined: conditions.length > 0, conditions: conditions.join(" ") };
  const ranked = [
    ...rankedMatches(database, filter, "i.source_type <> 'file'"),
    ...rankedMatches(database, filter, "i.source_type = 'file'"),
  ];
  const ids = bestOf(ranked, Math.max(0, Math.min(limit, MAX_SESSIONS)));
  const rows = database
    .prepare(
      `SELECT i.rowid AS id, i.session_id, i.source_type, i.source_id,
         snippet(search_index, 0, '»', '«', '…', ${SNIPPET_WORDS}) AS snippet,
         ${TIME} AS timestamp, s.cwd, s.repository, s.branch, s.summary
       FROM search_index i ${JOINED} WHERE search_index MATCH ? AND i.rowid IN (SELECT value FROM json_each(?))`,
    )
    .all(match, JSON.stringify(ids));
  const found = new Map(rows.map((row) => [Number(row.id), foundOf(row)]));
  return ids.flatMap((id) => found.get(id) ?? []);
}

interface Filter {
  readonly match: string;
  readonly conditions: string;
  readonly values: readonly string[];
  readonly isJoined: boolean;
}

interface Ranked {
  readonly id: number;
  readonly sessionId: string;
}

function rankedMatches(database: DatabaseSyncInstance, filter: Filter, source: string): Ranked[] {
  const { match, conditions, values, isJoined } = filter;
  const from = `FROM search_index i ${isJoined ? JOINED : ""} WHERE search_index MATCH ? AND ${source} ${conditions}`;
  const candidates = database
    .prepare(`SELECT i.rowid AS id ${from} ORDER BY i.rowid DESC LIMIT ${MAX_RANKED}`)
    .all(match, ...values);
  const oldest = candidates.at(-1)?.id;
  if (oldest === undefined) return [];
  return database
    .prepare(`SELECT i.rowid AS id, i.session_id ${from} AND i.rowid >= ? ORDER BY i.rank`)
    .all(match, ...values, Number(oldest))
    .map((row) => ({ id: Number(row.id), sessionId: String(row.session_id) }));
}

function bestOf(ranked: readonly Ranked[], limit: number): number[] {
  const sessions = new Map<string, number[]>();
  for (const { id, sessionId } of ranked) {
    const matches = sessions.get(sessionId);
    if (matches === undefined && sessions.size < limit) sessions.set(sessionId, [id]);
    else if (matches !== undefined && matches.length < MAX_PLACES) matches.push(id);
  }
  return [...sessions.values()].flat();
}

const JOINED = `JOIN sessions s ON s.id = i.session_id
  LEFT JOIN turns t ON i.source_type = 'turn' AND t.session_id = i.session_id AND t.turn_index = i.source_id
  LEFT JOIN checkpoints c
    ON i.source_type = 'checkpoint' AND c.session_id = i.session_id AND c.checkpoint_number = i.source_id
  LEFT JOIN session_files f
    ON i.source_type = 'file' AND f.session_id = i.session_id AND f.file_path = i.content AND f.search_id = i.rowid`;

const TIME = "coalesce(t.timestamp, c.created_at, f.first_seen_at, s.updated_at)";

/** Quotes each word, so that nothing in it is read as FTS5 query syntax. */
function matchOf(words: string): string {
  const terms = words.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return terms.map((term) => `"${term.replaceAll('"', '""')}"*`).join(" ");
}

const belowOf = (folder: string): string => (folder.endsWith("/") ? folder : `${folder}/`);

function foundOf(row: Record<string, unknown>): SearchMatch {
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const [repository, branch, title] = [text(row.repository), text(row.branch), text(row.summary)];
  return {
    sessionId: String(row.session_id),
    source: String(row.source_type) as SearchMatch["source"],
    number: Number(row.source_id),
    snippet: String(row.snippet),
    timestamp: String(row.timestamp),
    cwd: String(row.cwd),
    ...defined({ repository, branch, title }),
  };
}
