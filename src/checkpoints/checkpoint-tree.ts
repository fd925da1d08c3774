/** Walks the paths to back up before a command, within limits, and reads their state. */
import { createHash } from "node:crypto";
import { type BigIntStats, constants, lstatSync, readdirSync } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { TroupeError } from "../protocol/errors.ts";
import type { PathState } from "./checkpoint-schema.ts";

export interface TreeOptions {
  readonly entries?: number;
  readonly bytes?: number;
  /** Applies only beyond `ALWAYS_ENTRIES`. */
  readonly milliseconds?: number;
  /** Paths to skip, together with everything below them. */
  leavesOut?(path: string): boolean;
}

export const MAX_TREE_BYTES = 64 * 1024 * 1024;
const MAX_TREE_ENTRIES = 10_000;
const ENTRIES_AT_ONCE = 250;
/** A busy machine must not leave a small folder without a copy. */
export const ALWAYS_ENTRIES = 100;

export interface Surveyed {
  readonly path: string;
  readonly kind: "file" | "link" | "folder";
  readonly mode: number;
  readonly size: number;
  /** Stays the same while the file is unchanged. It includes ctime, which programs cannot set. */
  readonly version: string;
}

/**
 * Returns all entries below the paths, folders before their contents. Throws a limit error before anything is copied.
 */
export async function survey(paths: readonly string[], options: TreeOptions = {}): Promise<Surveyed[]> {
  const { entries = MAX_TREE_ENTRIES, bytes: most = MAX_TREE_BYTES, milliseconds = Number.POSITIVE_INFINITY } = options;
  const end = performance.now() + milliseconds;
  const found = new Map<string, Surveyed>();
  const waiting = [...paths].reverse();
  let bytes = 0;
  for (let looked = 1; waiting.length > 0; looked++) {
    const path = waiting.pop() ?? "";
    const one = found.has(path) || options.leavesOut?.(path) ? undefined : look(path);
    if (one !== undefined) {
      found.set(path, one);
      bytes += one.kind === "file" ? one.size : 0;
      if (one.kind === "folder") waiting.push(...names(path).reverse());
    }
    const isLate = found.size > ALWAYS_ENTRIES && performance.now() > end;
    if (bytes > most || found.size > entries || isLate) throw tooMuch(paths, options);
    if (looked % ENTRIES_AT_ONCE === 0) await breathe();
  }
  return [...found.values()];
}

function look(path: string): Surveyed | undefined {
  const stat = statOf(path);
  const kind = stat && kindOf(stat);
  if (stat === undefined || kind === undefined) return undefined;
  const version = `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}:${stat.mode}`;
  return { path, kind, mode: Number(stat.mode) & 0o7777, size: Number(stat.size), version };
}

/** Returns undefined also when access is denied. */
function statOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

function kindOf(stat: BigIntStats): Surveyed["kind"] | undefined {
  if (stat.isSymbolicLink()) return "link";
  if (stat.isDirectory()) return "folder";
  return stat.isFile() ? "file" : undefined;
}

/** Returns no names for an unreadable folder: the same user cannot empty it either. */
function names(folder: string): string[] {
  try {
    return readdirSync(folder)
      .sort()
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/**
 * Returns the content of a regular file, or undefined if it cannot be read or is no longer a regular file. With
 * `isReal`, also returns undefined if a folder on the path is a symbolic link. Otherwise a command that swaps folders
 * could have other files copied.
 */
export async function contentOf(path: string, { isReal = false } = {}): Promise<Buffer | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const stat = await handle.stat();
    if (isReal && (await openedAt(handle, path)) !== path) return undefined;
    return stat.isFile() && stat.size <= MAX_TREE_BYTES ? await handle.readFile() : undefined;
  } finally {
    await handle.close();
  }
}

/** Returns the real path of the open file, from the kernel on Linux and by name elsewhere. */
async function openedAt(handle: FileHandle, path: string): Promise<string | undefined> {
  if (process.platform === "linux") return readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
  return realpath(path).catch(() => undefined);
}

/** Returns the current state of the path, without following links. */
export async function entryAt(path: string): Promise<PathState> {
  const stat = await lstat(path).catch(undefinedIfMissing);
  if (!stat) return { kind: "missing" };
  const mode = stat.mode & 0o7777;
  if (stat.isSymbolicLink()) return { kind: "link", target: await readlink(path) };
  if (stat.isDirectory()) return { kind: "folder", mode };
  if (!stat.isFile() || stat.size > MAX_TREE_BYTES) return { kind: "file", hash: "", mode };
  const content = await contentOf(path);
  return { kind: "file", hash: content === undefined ? "" : sha256(content), mode };
}

/** Compares kind and content, and the mode if both modes are known. */
export function sameEntry(one: PathState, other: PathState): boolean {
  if (one.kind === "file" && other.kind === "file" && (one.mode === -1 || other.mode === -1)) {
    return one.hash === other.hash;
  }
  return JSON.stringify(one) === JSON.stringify(other);
}

function tooMuch(paths: readonly string[], options: TreeOptions): TroupeError {
  const { entries = MAX_TREE_ENTRIES, bytes = MAX_TREE_BYTES } = options;
  const most = `${bytes / 1024 / 1024} MiB or ${entries} files`;
  return new TroupeError("limit", `${paths.join(", ")}: more than ${most}, too large to copy.`, {
    hint: "The change could not be undone, so the user must allow it or do it. Smaller parts can be copied.",
  });
}

export function undefinedIfMissing(error: unknown): undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
  return undefined;
}

export function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
