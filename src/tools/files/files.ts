/**
 * State of the file tools of this folder beyond the disk: the version of a file that this agent has seen, other
 * writers, locks and checkpoints of previous content. One `Files` per agent; agents that work on the same files share a
 * `FileLedger`. All paths are real paths.
 */
import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { deferred } from "../../lib/deferred.ts";
import type { OpenedEntry } from "../../lib/node/paths.ts";
import { unsavedContent } from "../text-buffers.ts";
import type { LockWait } from "../tool.ts";
import { readAt } from "./text-file.ts";

/** A version of a file. */
export interface FileState {
  readonly size: number;
  readonly mtimeMs: number;
  /** SHA-256 of the content, in hexadecimal. */
  readonly hash: string;
}

/** One file before and after a change, for undo. */
export interface FileChange {
  readonly path: string;
  readonly toolCallId: string;
  readonly before: "missing" | { readonly content: Uint8Array; readonly mode: number };
  readonly after: "missing" | { readonly hash: string };
  /** Folders created for the file, outermost first. */
  readonly madeFolders: readonly string[];
}

export interface Files {
  noteRead(path: string, state: FileState): void;
  noteWritten(path: string, state: FileState | "missing"): void;
  /** Returns the version this agent last read or wrote, or undefined. */
  lastRead(path: string): FileState | undefined;
  /** Returns the other agent that wrote this version, if any. */
  writerOf(path: string, hash: string): string | undefined;
  /** Resolves when all previous contents are stored. Files may be changed only after that. */
  checkpoint(changes: readonly FileChange[]): Promise<void>;
  /** Runs `work` with exclusive access to the paths. The signal cancels the wait for the locks. */
  alone<T>(paths: readonly string[], how: AloneOptions, work: () => Promise<T>): Promise<T>;
  /**
   * Records the paths that a call was permitted to write. A call whose path resolves elsewhere when it runs is refused.
   */
  intend(toolCallId: string, paths: readonly string[]): void;
  intended(toolCallId: string): readonly string[] | undefined;
  /** Returns why the path must not be written, whatever the permissions; undefined when it may. */
  reasonToRefuse(path: string): string | undefined;
}

interface AloneOptions {
  readonly signal: AbortSignal;
  /** Called when another agent holds a path, and again when the wait is over. */
  readonly onWait?: ((wait: LockWait) => void) | undefined;
}

/** State shared by agents that work on the same files. */
export interface FileLedger {
  readonly queues: Map<string, Promise<void>>;
  /** The agent that is currently changing each path. */
  readonly holders: Map<string, string>;
  readonly writers: Map<string, { readonly agent: string; readonly hash: string }>;
}

/** Returns a ledger for all agents of one working tree; a worktree has its own. */
export const fileLedger = (): FileLedger => ({ queues: new Map(), holders: new Map(), writers: new Map() });

export const MAX_EDIT_BYTES = 10 * 1024 * 1024;
const MAX_REMEMBERED = 20_000;
const MAX_INTENDED = 1_000;

export function rememberedFiles(options: {
  /** Stores the previous contents. */
  readonly keep: (changes: readonly FileChange[]) => Promise<void>;
  /** The agent's name, shown to other agents whose version became stale. */
  readonly agent?: string;
  readonly ledger?: FileLedger;
  readonly reasonToRefuse?: (path: string) => string | undefined;
}): Files {
  const { keep, agent = "main", ledger = fileLedger() } = options;
  const seen = new Map<string, FileState>();
  const intentions = new Map<string, readonly string[]>();
  return {
    noteRead: (path, state) => remember(seen, path, state, MAX_REMEMBERED),
    noteWritten(path, state) {
      if (state === "missing") {
        seen.delete(path);
        return;
      }
      remember(seen, path, state, MAX_REMEMBERED);
      remember(ledger.writers, path, { agent, hash: state.hash }, MAX_REMEMBERED);
    },
    lastRead: (path) => seen.get(path),
    writerOf(path, hash) {
      const writer = ledger.writers.get(path);
      return writer?.hash === hash && writer.agent !== agent ? writer.agent : undefined;
    },
    checkpoint: keep,
    alone: (paths, how, work) => withLocks(ledger, { paths: [...new Set(paths)].sort(), agent, ...how, work }),
    intend: (toolCallId, paths) => remember(intentions, toolCallId, paths, MAX_INTENDED),
    intended: (toolCallId) => intentions.get(toolCallId),
    reasonToRefuse: (path) => options.reasonToRefuse?.(path),
  };
}

/** Returns the `Files` of the context. Throws when the runtime offers file tools without one. */
export function filesOf(context: { readonly files?: Files }): Files {
  if (context.files) return context.files;
  throw new Error("This session has tools that change files, but no record of read files.");
}

/**
 * Records the current version of an opened file as seen by this agent. Call it before showing the content, so that
 * later changes are detected. Returns the unsaved content when a client has one.
 */
export async function noteSeen(
  opened: OpenedEntry,
  context: { readonly files?: Files } & Parameters<typeof unsavedContent>[1],
): Promise<Buffer | undefined> {
  const { handle, stat } = opened;
  if (!context.files || !stat.isFile() || stat.size > MAX_EDIT_BYTES) return undefined;
  const path = await realpath(opened.pinnedPath).catch(() => undefined);
  if (path === undefined) return undefined;
  const content = await readAt(handle, 0, stat.size);
  const unsaved = await unsavedContent({ realPath: path, stat, content }, context);
  context.files.noteRead(path, { size: stat.size, mtimeMs: stat.mtimeMs, hash: hashOf(unsaved ?? content) });
  return unsaved;
}

export function hashOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Takes locks in sorted order of the paths, to prevent deadlocks. */
async function withLocks<T>(
  ledger: Pick<FileLedger, "queues" | "holders">,
  how: AloneOptions & { readonly paths: readonly string[]; readonly agent: string; readonly work: () => Promise<T> },
): Promise<T> {
  const { queues, holders } = ledger;
  const { paths, agent, signal, onWait, work } = how;
  const [path, ...rest] = paths;
  if (path === undefined) return await work();
  const before = queues.get(path) ?? Promise.resolve();
  const mine = deferred<void>();
  const tail = before.then(() => mine.promise);
  queues.set(path, tail);
  try {
    const holder = holders.get(path);
    if (holder !== undefined) onWait?.({ path, holder, isOver: false });
    await orAborted(before, signal);
    if (holder !== undefined) onWait?.({ path, holder, isOver: true });
    holders.set(path, agent);
    return await withLocks(ledger, { ...how, paths: rest }).finally(() => holders.delete(path));
  } finally {
    mine.resolve();
    if (queues.get(path) === tail) void tail.then(() => queues.get(path) === tail && queues.delete(path));
  }
}

function orAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    void wait.then(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
  });
}

/** Drops the oldest entries first. That is safe: a dropped file only has to be viewed again. */
function remember<T>(map: Map<string, T>, key: string, value: T, limit: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= limit) break;
    map.delete(oldest);
  }
}
