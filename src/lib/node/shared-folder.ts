/**
 * Reads and writes files in a folder that sandboxed commands or file tools can change, such as `files/` of a session.
 * Nothing in such a folder is trusted: a name may be a link, a pipe, a device or a hard link, and may be replaced at
 * any moment. Every access goes through the descriptor of an open folder, see `paths.ts`.
 */
import * as fs from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { type Disk, nodeDisk } from "./disk.ts";
import { type OpenedEntry, openForReading, PathError, readDirectory, resolveInside } from "./paths.ts";
import { openAsIs, openForWriting } from "./paths-write.ts";

const PRIVATE_FILE = 0o600;
const PIECE_BYTES = 1024 * 1024;
const MAX_ENTRIES = 100_000;

/**
 * Returns the content of a regular file, or `undefined` if there is no such file or folder.
 * Throws a `PathError` for links that lead out of the folder, hard links, special files and files above `maxBytes`.
 */
export async function readShared(folder: string, path: string, maxBytes: number): Promise<Buffer | undefined> {
  const opened = await openShared(folder, path, maxBytes);
  if (opened === undefined) return undefined;
  try {
    return await readOpened(opened, maxBytes);
  } finally {
    await opened.handle.close();
  }
}

/** Like `readShared`, in pieces, but throws for a missing file. Ends at the size that the file had on opening. */
export async function* readSharedPieces(folder: string, path: string, maxBytes: number): AsyncGenerator<Buffer> {
  const opened = await openShared(folder, path, maxBytes);
  if (opened === undefined) throw new PathError("missing", path, `There is no file ${path} in ${folder}.`);
  try {
    for (let at = 0; at < opened.stat.size; ) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, opened.stat.size - at));
      const { bytesRead } = await opened.handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  } finally {
    await opened.handle.close();
  }
}

/** Returns the content of a regular file anywhere, without waiting for a pipe or reading a device. */
export async function readRegular(path: string, maxBytes: number): Promise<Buffer> {
  const opened = await openForReading(path, { cwd: sep, roots: [], maxBytes });
  try {
    if (opened.kind !== "file") throw notAFile(path);
    return await readOpened(opened, maxBytes);
  } finally {
    await opened.handle.close();
  }
}

/**
 * Creates or replaces a file atomically, with mode 0600, and creates the folders on the way to it.
 * Throws a `PathError` where `openForWriting` does. With `onlyNew` an existing entry is left unchanged.
 */
export async function writeShared(
  folder: string,
  path: string,
  { content, disk = nodeDisk, onlyNew = false }: { content: string; disk?: Disk; onlyNew?: boolean },
): Promise<{ isNew: boolean }> {
  await disk.mkdir(folder);
  const root = await rootOf(folder);
  const target = await openForWriting(path, { cwd: root, roots: [root], disk });
  try {
    const isNew = target.stat === undefined;
    if (isNew || !onlyNew) await target.write(Buffer.from(content), { mode: PRIVATE_FILE });
    return { isNew };
  } finally {
    await target.close();
  }
}

/** Removes a file or a link, never the target of a link. Returns whether there was one. */
export async function removeShared(folder: string, path: string, disk: Disk = nodeDisk): Promise<boolean> {
  const root = await rootOf(folder).catch(ignoreMissing);
  if (root === undefined) return false;
  const target = await openAsIs(path, { cwd: root, roots: [root], disk });
  try {
    if (target.stat === undefined || target.stat.isDirectory()) return false;
    await target.remove();
    return true;
  } finally {
    await target.close();
  }
}

export interface SharedFile {
  /** Relative to the folder, with the separators of the system. */
  readonly path: string;
  readonly stat: fs.Stats;
}

/**
 * Returns the regular files below the folder, sorted by path. Links are not followed. Entries beyond the limits are
 * omitted.
 */
export async function filesInShared(
  folder: string,
  options: { maxFiles: number; maxDepth?: number; leavesOut?(path: string): boolean },
): Promise<SharedFile[]> {
  const { maxFiles, maxDepth = 32, leavesOut } = options;
  const root = await rootOf(folder).catch(ignoreMissing);
  const found: SharedFile[] = [];
  const waiting = root === undefined ? [] : [{ path: root, depth: 0 }];
  let entries = 0;
  for (let at = waiting.pop(); root !== undefined && at !== undefined; at = waiting.pop()) {
    const opened = await resolveInside(at.path, { cwd: root, roots: [root] }).catch(() => undefined);
    if (opened === undefined) continue;
    try {
      const { names } = opened.kind === "directory" ? await readDirectory(opened) : { names: [] };
      for (const name of names) {
        if (++entries > MAX_ENTRIES || found.length >= maxFiles) return sorted(found);
        const path = join(at.path, name);
        if (leavesOut?.(relative(root, path))) continue;
        const stat = await fs.promises.lstat(join(opened.pinnedPath, name)).catch(() => undefined);
        if (stat?.isFile()) found.push({ path: relative(root, path), stat });
        else if (stat?.isDirectory() && at.depth < maxDepth) waiting.push({ path, depth: at.depth + 1 });
      }
    } catch (error) {
      if (!(error instanceof PathError)) throw error;
    } finally {
      await opened.handle.close();
    }
  }
  return sorted(found);
}

const sorted = (files: SharedFile[]): SharedFile[] =>
  files.sort((one, other) => (one.path < other.path ? -1 : one.path > other.path ? 1 : 0));

async function openShared(folder: string, path: string, maxBytes: number): Promise<OpenedEntry | undefined> {
  try {
    const root = await rootOf(folder);
    const opened = await openForReading(path, { cwd: root, roots: [root], maxBytes });
    const problem =
      opened.kind !== "file" ? notAFile(opened.path) : opened.stat.nlink > 1 ? hardLinkError(opened) : undefined;
    if (problem === undefined) return opened;
    await opened.handle.close();
    throw problem;
  } catch (error) {
    return ignoreMissing(error);
  }
}

/** The folder itself must not be a link, which would move everything below it elsewhere. */
export async function rootOf(folder: string): Promise<string> {
  const root = join(await fs.promises.realpath(dirname(folder)), basename(folder));
  if (!(await fs.promises.lstat(root)).isDirectory()) {
    throw new PathError("special", folder, `Path ${folder} is not a folder. Remove it and try again.`);
  }
  return root;
}

async function readOpened({ handle, stat }: OpenedEntry, maxBytes: number): Promise<Buffer> {
  const bytes = Buffer.alloc(Math.min(stat.size, maxBytes));
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

function ignoreMissing(error: unknown): undefined {
  const isMissing =
    error instanceof PathError
      ? error.problem === "missing"
      : error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
  if (!isMissing) throw error;
}

function notAFile(path: string): PathError {
  return new PathError("special", path, `Path ${path} is a folder, not a file.`);
}

function hardLinkError({ path, stat }: OpenedEntry): PathError {
  return new PathError("special", path, `${path} has ${stat.nlink} names (hard links) and is not read.`);
}
