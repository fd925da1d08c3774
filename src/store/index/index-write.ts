/** Writes the rows of sessions into the session index, in one transaction per call. */
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import type { SessionSummary } from "../store.ts";
import { inTransaction } from "./index-file.ts";
import type { CheckpointRow, FileRow, NewRows, TurnRow } from "./session-rows.ts";

export interface SessionUpdate {
  readonly summary: SessionSummary;
  /** The revision of the log that the rows come from. */
  readonly revision: string;
  readonly rows: NewRows;
  /** `added`: adds to the rows that exist. `all`: replaces them. */
  readonly extent: "all" | "added";
}

const INDEXED_TABLES = ["turns", "checkpoints", "session_files"] as const;

interface IndexedRow {
  readonly content: string;
  readonly sessionId: string;
  readonly sourceType: "turn" | "checkpoint" | "file";
  readonly sourceId: number;
}

/** Prepares each statement once and reuses it for many sessions. */
export class IndexWriter {
  readonly #database: DatabaseSyncInstance;
  readonly #statements = new Map<string, StatementSyncInstance>();
  #lastNumber = 0;

  constructor(database: DatabaseSyncInstance) {
    this.#database = database;
  }

  /** Writes all updates or none. */
  writeAll(updates: readonly SessionUpdate[]): void {
    this.#inTransaction(() => {
      for (const update of updates) this.#write(update);
    });
  }

  /**
   * Removes sessions and overwrites their text in the full-text index. Overwriting is slow, so updates do not do it.
   */
  removeAll(sessionIds: readonly string[]): void {
    const overwrite = "INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', ?)";
    this.#inTransaction(() => {
      this.#run(overwrite, "run", 1);
      for (const sessionId of sessionIds) this.#remove(sessionId);
      this.#run(overwrite, "run", 0);
    });
  }

  #inTransaction(work: () => void): void {
    inTransaction(this.#database, () => {
      const last = this.#run("SELECT max(id) AS last FROM search_index_content", "get");
      this.#lastNumber = Number(last?.last ?? 0);
      work();
    });
  }

  #write({ summary, revision, rows, extent }: SessionUpdate): void {
    const { sessionId } = summary;
    const isKnown = this.#run("SELECT 1 AS known FROM indexed WHERE session_id = ?", "get", sessionId) !== undefined;
    if (isKnown && extent === "all") this.#clear(sessionId);
    this.#writeSummary(summary);
    for (const turn of rows.turns) this.#writeTurn(sessionId, turn);
    for (const checkpoint of rows.checkpoints) this.#writeCheckpoint(sessionId, checkpoint);
    for (const file of rows.files) this.#writeFile(sessionId, file);
    for (const { type, value, turn, timestamp } of rows.references) {
      const sql =
        "INSERT OR IGNORE INTO session_refs (session_id, ref_type, ref_value, turn_index, created_at) VALUES (?, ?, ?, ?, ?)";
      this.#run(sql, "run", sessionId, type, value, turn, timestamp);
    }
    this.#run("INSERT OR REPLACE INTO indexed (session_id, revision) VALUES (?, ?)", "run", sessionId, revision);
  }

  #remove(sessionId: string): void {
    this.#clear(sessionId);
    this.#run("DELETE FROM sessions WHERE id = ?", "run", sessionId);
    this.#run("DELETE FROM indexed WHERE session_id = ?", "run", sessionId);
  }

  #clear(sessionId: string): void {
    for (const table of INDEXED_TABLES) {
      const own = `SELECT search_id FROM ${table} WHERE session_id = ?`;
      this.#run(`DELETE FROM search_index WHERE rowid IN (${own})`, "run", sessionId);
      this.#run(`DELETE FROM ${table} WHERE session_id = ?`, "run", sessionId);
    }
    this.#run("DELETE FROM session_refs WHERE session_id = ?", "run", sessionId);
  }

  #writeSummary(summary: SessionSummary): void {
    const { sessionId, cwd, repository, branch, name, title, createdAt, updatedAt, gitRoot, model } = summary;
    const sql = `INSERT OR REPLACE INTO sessions
      (id, cwd, repository, branch, host_type, summary, created_at, updated_at, name, git_root, model)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    const hostType = repository === undefined ? null : "github";
    const told = [name ?? title, createdAt, updatedAt, name, gitRoot, model].map((value) => value ?? null);
    this.#run(sql, "run", sessionId, cwd, repository ?? null, branch ?? null, hostType, ...told);
  }

  #writeTurn(sessionId: string, { turn, prompt, reply, timestamp }: TurnRow): void {
    const before = this.#run(
      "SELECT search_id FROM turns WHERE session_id = ? AND turn_index = ?",
      "get",
      ...[sessionId, turn],
    );
    if (before) this.#run("DELETE FROM search_index WHERE rowid = ?", "run", Number(before.search_id));
    const content = reply === "" ? prompt : `${prompt}\n${reply}`;
    const number = this.#index({ content, sessionId, sourceType: "turn", sourceId: turn });
    const sql = `INSERT OR REPLACE INTO turns
      (session_id, turn_index, user_message, assistant_response, timestamp, search_id) VALUES (?, ?, ?, ?, ?, ?)`;
    this.#run(sql, "run", sessionId, turn, prompt, reply, timestamp, number);
  }

  #writeCheckpoint(sessionId: string, checkpoint: CheckpointRow): void {
    const { number, title, overview, history, workDone, technicalDetails, importantFiles, nextSteps } = checkpoint;
    const sections = [title, overview, history, workDone, technicalDetails, importantFiles, nextSteps];
    const content = sections.filter((text) => text !== "").join("\n");
    const searchId = this.#index({ content, sessionId, sourceType: "checkpoint", sourceId: number });
    const sql = `INSERT INTO checkpoints (session_id, checkpoint_number, title, overview, history, work_done,
      technical_details, important_files, next_steps, created_at, search_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    this.#run(sql, "run", sessionId, number, ...sections, checkpoint.timestamp, searchId);
  }

  #writeFile(sessionId: string, { path, toolName, turn, timestamp }: FileRow): void {
    const searchId = this.#index({ content: path, sessionId, sourceType: "file", sourceId: turn });
    const sql = `INSERT INTO session_files
      (session_id, file_path, tool_name, turn_index, first_seen_at, search_id) VALUES (?, ?, ?, ?, ?, ?)`;
    this.#run(sql, "run", sessionId, path, toolName, turn, timestamp, searchId);
  }

  /** Row ids only increase: FTS5 would flush to disk for an id lower than the last one. */
  #index({ content, sessionId, sourceType, sourceId }: IndexedRow): number {
    const number = ++this.#lastNumber;
    const sql = "INSERT INTO search_index (rowid, content, session_id, source_type, source_id) VALUES (?, ?, ?, ?, ?)";
    this.#run(sql, "run", number, content, sessionId, sourceType, sourceId);
    return number;
  }

  #run(sql: string, how: "run" | "get", ...values: readonly (string | number | null)[]) {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    if (how === "get") return statement.get(...values);
    statement.run(...values);
    return undefined;
  }
}
