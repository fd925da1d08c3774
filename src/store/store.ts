/**
 * Where sessions are kept. The log is the truth: append-only, one writer per session, and the order of `append` is
 * the order of `events`. Everything else in a session's folder can be rebuilt or done without.
 */

import type { SessionEvent } from "../protocol/event.ts";
import type { SqliteProvider } from "../protocol/session-fs.ts";
import type { Damage } from "./damage.ts";
import type { SessionFork } from "./fork-folder.ts";
import type { View } from "./log/rewound.ts";
import type { Scan, Scanned } from "./log-scan.ts";
import type { RecentEvents } from "./recent.ts";

export interface Store {
  /** A log that does not exist yet. Nothing is on disk before its first append. */
  create(sessionId: string): Promise<SessionLog>;
  /** Takes the writer's lock if it is free; otherwise the log opens read-only and says who holds it. */
  open(sessionId: string): Promise<SessionLog>;
  list(): Promise<readonly SessionSummary[]>;
  /** Ids of all sessions, the one written last first, without reading any log. */
  ids(): Promise<readonly string[]>;
  /** The log as it is now, without its lock. While another process writes, its unfinished last line is left out. */
  read(sessionId: string): Promise<View & { readonly damage: readonly Damage[] }>;
  /**
   * Events in view, oldest first, a page at a time: what a long log costs in memory is a page, unless it is damaged. Places
   * that cannot be used are reported to `onDamage`.
   */
  events(sessionId: string, onDamage?: (damage: readonly Damage[]) => void): AsyncIterable<SessionEvent>;
  /**
   * The events from the last one on for which `isStart` is true, without reading what comes before them. Undefined when
   * the log is not long, or only reading all of it tells: then use `events`.
   */
  recent(sessionId: string, isStart: (event: SessionEvent) => boolean): Promise<RecentEvents | undefined>;
  /** Counts the events in view and parses only some: cheaper than `events` for a long log. */
  scan(sessionId: string, scan: Scan): Promise<Scanned>;
  /** Differs whenever the log has changed; undefined when there is no such session. Cheap. */
  revision(sessionId: string): Promise<string | undefined>;
  /** Those of all sessions of this person, in no order, without reading any log. */
  revisions(): Promise<readonly SessionRevision[]>;
  /** Makes a session of its own from another, all of it at once. The other may be at work. */
  fork(sessionId: string, fork: SessionFork): Promise<void>;
  /** Deletes the session and all its files; fails while another process writes it. */
  remove(sessionId: string): Promise<void>;
}

export interface SessionLog {
  readonly sessionId: string;
  /** The session's own folder on this machine, for what does not belong in a line of the log. */
  readonly directory: string;
  /** Set when a client keeps the session: `directory` then has only what is of use on this machine. */
  readonly elsewhere?: Elsewhere;
  /**
   * What was in the log when it was opened, as it reads after its rewinds; events of unknown types are among them, as
   * they were written. Of a long log only what still matters: folds over it give the same as over the whole.
   */
  readonly events: readonly SessionEvent[];
  /** What rewinds had taken out of view by then, as far as it still matters. */
  readonly removed: readonly SessionEvent[];
  /** Number of events that were in view when it was opened; larger than `events.length` when those are condensed. */
  readonly count: number;
  /** Events in view from position `from` (0 = the first) up to, not including, `to`, as they are stored now. */
  page(from: number, to: number): Promise<readonly SessionEvent[]>;
  /**
   * Stores a snapshot of the whole log as it is now, so that the next opening need not read it. The caller has condensed
   * every event appended so far. False when none was stored, which does no harm.
   */
  snapshot(now: { readonly events: readonly SessionEvent[]; readonly count: number }): Promise<boolean>;
  /** Everything that is in the log now, also what is out of view. */
  everything(): Promise<readonly SessionEvent[]>;
  readonly damage: readonly Damage[];
  /** Set when another process is writing. `append` then fails with a storage error. */
  readonly heldBy: { readonly pid: number; readonly host?: string; readonly advice?: string } | undefined;
  /**
   * Resolves when the event is as durable as asked: written (survives the death of this process), or with `barrier`
   * synced (survives a power cut). Appends share syncs. After a failed write the log accepts no more until `recover`.
   */
  append(event: SessionEvent, options: { barrier: boolean }): Promise<void>;
  /** Everything appended so far is on disk. */
  flush(): Promise<void>;
  /**
   * After a storage error: the log is brought back to exactly what was acknowledged and accepts appends again.
   * Fails with a storage error as long as the cause lasts; may be called as often as wanted.
   */
  recover(): Promise<void>;
  /** Keeps a binary beside the log; the same bytes are kept once. Returns its id. */
  writeAsset(data: Uint8Array, extension: string): Promise<{ assetId: string; path: string }>;
  readAsset(assetId: string): Promise<Uint8Array | undefined>;
  /** Stores a text too large for the model in `records/` and returns its path. */
  writeFile(name: string, content: string): Promise<string>;
  /** What `writeFile` kept under this path; undefined when it is gone. */
  readFile(path: string): Promise<string | undefined>;
  /** Replaces `workspace.yaml`, which lists read instead of the log. */
  writeSummary(summary: SessionSummary): Promise<void>;
  /** Writes what is left, then lets go of the lock. Later appends fail. */
  close(): Promise<void>;
}

/** The files of a session that a client keeps. Paths are relative to `directory`, with slashes. */
export interface Elsewhere {
  /** As the client names it. */
  readonly directory: string;
  /** A path of a file as the client names it. */
  nameOf(path: string): string;
  /** Undefined when there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** Whole or not at all; makes folders as needed. */
  write(path: string, content: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** All files below a folder, by paths relative to it; how many are told is bounded. */
  list(folder: string): Promise<readonly string[]>;
  /** Where tools on this machine find what `SessionLog.writeFile` has kept. */
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
  /** The first words of the first prompt. */
  readonly title?: string;
  readonly model?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly turns: number;
  readonly costUsd?: number | null;
  /** Set for one that was started to consolidate another; nobody goes on with it by mistake. */
  readonly detachedFrom?: string;
}

export interface SessionRevision {
  readonly sessionId: string;
  readonly revision: string;
  /** When the log was written last, in milliseconds. */
  readonly changedMs: number;
}
