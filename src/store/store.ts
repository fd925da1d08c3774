/**
 * Stores sessions; this folder has the log, its index, and the files beside it. The log is the source of truth:
 * append-only, one writer per session, and `events` has the order of the `append` calls. Everything else in a session's
 * folder is derived or dispensable.
 */

import type { SessionHolder } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { SqliteProvider } from "../protocol/session-fs.ts";
import type { Damage } from "./damage.ts";
import type { SessionFork } from "./fork-folder.ts";
import type { RewoundLog } from "./log/rewound.ts";
import type { Scan, Scanned } from "./log-scan.ts";
import type { RecentEvents } from "./recent.ts";

export interface Store {
  /** Returns a log for a new session. Nothing is on disk before its first append. */
  create(sessionId: string): Promise<SessionLog>;
  /** Takes the writer's lock if it is free. Otherwise the log opens read-only and `heldBy` names the holder. */
  open(sessionId: string): Promise<SessionLog>;
  list(): Promise<readonly SessionSummary[]>;
  /** Returns the ids of all sessions without reading any log, most recently written first. */
  ids(): Promise<readonly string[]>;
  /** Returns the current log without taking its lock. Omits an unfinished last line. */
  read(sessionId: string): Promise<RewoundLog & { readonly damage: readonly Damage[] }>;
  /**
   * Yields the events in view (not taken back by a rewind), oldest first. Holds only a page in memory, unless the log
   * is damaged. Reports unusable parts to `onDamage`.
   */
  events(sessionId: string, onDamage?: (damage: readonly Damage[]) => void): AsyncIterable<SessionEvent>;
  /**
   * Returns the events from the last one for which `isStart` is true, without reading earlier ones. Returns `undefined`
   * when the log is short or must be read as a whole: then use `events`.
   */
  recent(sessionId: string, isStart: (event: SessionEvent) => boolean): Promise<RecentEvents | undefined>;
  /** Counts the events in view and parses only some. Cheaper than `events` for a long log. */
  scan(sessionId: string, scan: Scan): Promise<Scanned>;
  /** Returns a value that changes with the log, or `undefined` if there is no such session. Cheap. */
  revision(sessionId: string): Promise<string | undefined>;
  /** Returns the revisions of all of this user's sessions, unordered, without reading any log. */
  revisions(): Promise<readonly SessionRevision[]>;
  /** Creates a new session from another one, atomically. The source may be in use. */
  fork(sessionId: string, fork: SessionFork): Promise<void>;
  /** Deletes the session and all its files. Throws while another process writes it. */
  remove(sessionId: string): Promise<void>;
  /** Absent if this kind of store cannot copy logs line by line. */
  readonly exact?: ExactLines | undefined;
}

/** Copies whole logs from one store to another. Files beside the log are not included. */
export interface ExactLines {
  /** Yields the stored lines without their newlines, those out of view and damaged ones included. */
  read(sessionId: string): AsyncIterable<string>;
  /** Creates a session from these lines, atomically. Throws if it exists or a line is damaged. */
  add(sessionId: string, lines: AsyncIterable<string>): Promise<void>;
}

export interface SessionLog {
  readonly sessionId: string;
  /** The session's folder on this machine, for data that does not belong in the log. */
  readonly directory: string;
  /** Set when a client stores the session. `directory` then has only data for this machine. */
  readonly clientFiles?: ClientFiles;
  /**
   * The events in view when the log was opened, including those of unknown types. For a long log they are condensed:
   * folds over them give the same result as over the whole log.
   */
  readonly events: readonly SessionEvent[];
  /** Events that rewinds had removed by then, condensed. */
  readonly removed: readonly SessionEvent[];
  /** Number of events in view at opening. Larger than `events.length` if those are condensed. */
  readonly count: number;
  /** Returns the events in view from position `from` (0 is the first) up to but excluding `to`, as currently stored. */
  page(from: number, to: number): Promise<readonly SessionEvent[]>;
  /**
   * Stores a snapshot of the whole log, so that the next open need not read it. `now` must be condensed from every
   * event appended so far. Returns false if none was stored, which does no harm.
   */
  snapshot(now: { readonly events: readonly SessionEvent[]; readonly count: number }): Promise<boolean>;
  /** Returns all events in the log, including those out of view. */
  everything(): Promise<readonly SessionEvent[]>;
  readonly damage: readonly Damage[];
  /** Set when another process is writing. `append` then throws a storage error. */
  readonly heldBy: SessionHolder | undefined;
  /**
   * Resolves when the event is written (survives the death of this process) or, with `barrier`, synced (survives a
   * power cut). Appends share syncs. After a failed write all appends throw until `repairAfterFailedWrite` succeeds.
   */
  append(event: SessionEvent, options: { barrier: boolean }): Promise<void>;
  /** Resolves when everything appended so far is on disk. */
  flush(): Promise<void>;
  /**
   * Restores the log to what was acknowledged after a storage error, and accepts appends again. Throws a storage error
   * while the cause lasts. May be called repeatedly.
   */
  repairAfterFailedWrite(): Promise<void>;
  /** Stores a binary beside the log and returns its id. The same bytes are stored once. */
  writeAsset(data: Uint8Array, extension: string): Promise<{ assetId: string; path: string }>;
  readAsset(assetId: string): Promise<Uint8Array | undefined>;
  /** Stores a text too large for the model in `records/` and returns its path. */
  writeFile(name: string, content: string): Promise<string>;
  /** Returns the text that `writeFile` stored under this path, or `undefined` if it is gone. */
  readFile(path: string): Promise<string | undefined>;
  /** Replaces `workspace.yaml`, which session lists read instead of the log. */
  writeSummary(summary: SessionSummary): Promise<void>;
  /** Writes pending events, then releases the lock. Later appends throw. */
  close(): Promise<void>;
}

/** The files of a session that a client stores. Paths are relative to `directory`, with slashes. */
export interface ClientFiles {
  /** The client's name for the session's folder. */
  readonly directory: string;
  /** Returns the client's name for a file. */
  nameOf(path: string): string;
  /** Returns `undefined` if there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** Writes the file atomically. Creates folders as needed. */
  write(path: string, content: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Returns all files below a folder, by paths relative to it, up to a limit. */
  list(folder: string): Promise<readonly string[]>;
  /** Returns the local path of a text that `SessionLog.writeFile` stored. */
  copyOf(path: string): string | undefined;
  readonly sqlite: SqliteProvider | undefined;
}

export interface SessionSummary {
  readonly sessionId: string;
  readonly cwd: string;
  readonly gitRoot?: string;
  readonly repository?: string;
  readonly branch?: string;
  readonly name?: string;
  /** The beginning of the first prompt. */
  readonly title?: string;
  readonly model?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly turns: number;
  readonly costUsd?: number | null;
  /** Set for a session that was started to consolidate another one. Resuming the latest session skips it. */
  readonly detachedFrom?: string;
}

export interface SessionRevision {
  readonly sessionId: string;
  readonly revision: string;
  /** Time of the last write to the log, in milliseconds. */
  readonly changedMs: number;
}
