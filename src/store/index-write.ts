/** Puts what was folded from a log into the session store, one session at a time, within a transaction of the caller's. */
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import type { CheckpointRow, FileRow, NewRows, TurnRow } from "./session-rows.ts";
import type { SessionSummary } from "./store.ts";

export interface SessionUpdate {
  readonly summary: SessionSummary;
  /** Of the log that the rows are from. */
  readonly revision: string;
  readonly rows: NewRows;
  /** `added`: to what is there already; `all`: in its place. */
  readonly extent: "all" | "added";
}

/** Rows of the index of words have the number of what they are about, so that they are found again without a search. */
const KINDS = { turn: 0, checkpoint: 1, file: 2 } as const;
type Kind = keyof typeof KINDS;
const numberOf = (kind: Kind, id: number): number => id * 4 + KINDS[kind];
const SHIFT = 4;

/** Statements are made once and used for many sessions. */
export class IndexWriter {
  readonly #database: DatabaseSyncInstance;
  readonly #statements = new Map<string, StatementSyncInstance>();

  constructor(database: DatabaseSyncInstance) {
    this.#database = database;
  }

  write({ summary, revision, rows, extent }: SessionUpdate): void {
    const { sessionId } = summary;
    const isKnown = this.#run("SELECT 1 AS known FROM indexed WHERE session_id = ?", "get", sessionId) !== undefined;
    if (isKnown && extent === "all") this.#clear(sessionId);
    this.#writeSummary(summary);
    for (const turn of rows.turns) this.#writeTurn(sessionId, turn, extent);
    for (const checkpoint of rows.checkpoints) this.#writeCheckpoint(sessionId, checkpoint);
    for (const file of rows.files) this.#writeFile(sessionId, file);
    for (const { type, value, turn, timestamp } of rows.references) {
      const sql =
        "INSERT OR IGNORE INTO session_refs (session_id, ref_type, ref_value, turn_index, created_at) VALUES (?, ?, ?, ?, ?)";
      this.#run(sql, "run", sessionId, type, value, turn, timestamp);
    }
    this.#run("INSERT OR REPLACE INTO indexed (session_id, revision) VALUES (?, ?)", "run", sessionId, revision);
  }

  remove(sessionId: string): void {
    this.#clear(sessionId);
    this.#run("DELETE FROM sessions WHERE id = ?", "run", sessionId);
    this.#run("DELETE FROM indexed WHERE session_id = ?", "run", sessionId);
  }

  #clear(sessionId: string): void {
    for (const [table, kind] of [
      ["turns", KINDS.turn],
      ["checkpoints", KINDS.checkpoint],
      ["session_files", KINDS.file],
    ] as const) {
      const own = `SELECT id * ${SHIFT} + ${kind} FROM ${table} WHERE session_id = ?`;
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

  #writeTurn(sessionId: string, { turn, prompt, reply, timestamp }: TurnRow, extent: SessionUpdate["extent"]): void {
    const sql = `INSERT INTO turns (session_id, turn_index, user_message, assistant_response, timestamp)
      VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
      user_message = excluded.user_message, assistant_response = excluded.assistant_response RETURNING id`;
    const { id } = this.#run(sql, "get", sessionId, turn, prompt, reply, timestamp) as { id: number };
    if (extent === "added") this.#run("DELETE FROM search_index WHERE rowid = ?", "run", numberOf("turn", id));
    const content = reply === "" ? prompt : `${prompt}\n${reply}`;
    this.#index("turn", id, { content, sessionId, sourceId: turn });
  }

  #writeCheckpoint(sessionId: string, checkpoint: CheckpointRow): void {
    const { number, title, overview, history, workDone, technicalDetails, importantFiles, nextSteps } = checkpoint;
    const sections = [title, overview, history, workDone, technicalDetails, importantFiles, nextSteps];
    const sql = `INSERT INTO checkpoints (session_id, checkpoint_number, title, overview, history, work_done,
      technical_details, important_files, next_steps, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO NOTHING RETURNING id`;
    const made = this.#run(sql, "get", sessionId, number, ...sections, checkpoint.timestamp);
    const content = sections.filter((text) => text !== "").join("\n");
    if (made) this.#index("checkpoint", Number(made.id), { content, sessionId, sourceId: number });
  }

  #writeFile(sessionId: string, { path, toolName, turn, timestamp }: FileRow): void {
    const sql = `INSERT INTO session_files (session_id, file_path, tool_name, turn_index, first_seen_at)
      VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`;
    const made = this.#run(sql, "get", sessionId, path, toolName, turn, timestamp);
    if (made) this.#index("file", Number(made.id), { content: path, sessionId, sourceId: turn });
  }

  #index(kind: Kind, id: number, row: { content: string; sessionId: string; sourceId: number }): void {
    const sql = "INSERT INTO search_index (rowid, content, session_id, source_type, source_id) VALUES (?, ?, ?, ?, ?)";
    this.#run(sql, "run", numberOf(kind, id), row.content, row.sessionId, kind, row.sourceId);
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
