/**
 * The only way in which tools open files. A path is never checked and then opened by name. Its folder is opened first,
 * and the folder's real path is compared with the allowed roots. The last name is opened through that descriptor
 * without following links. Replacing a folder with a link meanwhile has no effect, since its name is no longer used.
 */
import * as fs from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";

export interface PathScope {
  readonly cwd: string;
  /** Allowed folders as real paths. Empty = no limit. */
  readonly roots: readonly string[];
  /** How folders are opened. Default: the safest way that this system offers. */
  readonly openFolder?: OpenFolder;
}

export type PathProblem = "invalid" | "missing" | "outside" | "special" | "unreadable" | "too-large";

/** An expected failure, worded for the model and the user. */
export class PathError extends Error {
  override readonly name = "PathError";
  readonly problem: PathProblem;
  readonly path: string;

  constructor(problem: PathProblem, path: string, message: string) {
    super(message);
    this.problem = problem;
    this.path = path;
  }
}

/** An entry inside the roots, held open. The caller closes `handle`. */
export interface OpenedEntry {
  /** Absolute, as the caller wrote it: links are not resolved. */
  readonly path: string;
  readonly kind: "file" | "directory";
  readonly handle: fs.promises.FileHandle;
  readonly stat: fs.Stats;
  /** Refers to exactly this object while `handle` is open, whatever happens to its name. */
  readonly pinnedPath: string;
}

export const MAX_LINK_HOPS = 40;
const CONFIRMATIONS = 3;
const MAX_PATH_BYTES = 4096;
const MAX_DIRECTORY_ENTRIES = 100_000;
const SYSTEM_FOLDERS = ["/proc", "/dev", "/sys"];
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_NOCTTY = 0, O_DIRECTORY = 0 } = fs.constants;

/** Opens a regular file or a directory, never a pipe, socket or device, and never waits for one. */
export async function openForReading(path: string, options: PathScope & { maxBytes?: number }): Promise<OpenedEntry> {
  const opened = await resolveInside(path, options);
  const { maxBytes = Number.POSITIVE_INFINITY } = options;
  if (opened.kind === "directory" || opened.stat.size <= maxBytes) return opened;
  await opened.handle.close();
  const sizes = `${opened.stat.size} bytes, more than the ${maxBytes} that can be read at once`;
  throw new PathError("too-large", opened.path, `${opened.path} has ${sizes}.`);
}

/** Opens a file or directory of any size. Links are followed while every step stays inside the roots. */
export async function resolveInside(path: string, scope: PathScope): Promise<OpenedEntry> {
  const asked = absolutePath(path, scope.cwd);
  let target = asked;
  for (let hop = 0; hop <= MAX_LINK_HOPS; hop++) {
    try {
      const step = await openStep(target, asked, scope);
      if (typeof step !== "string") return step;
      target = absolutePath(step, scope.cwd);
    } catch (error) {
      throw await explain(error, { asked, target, scope });
    }
  }
  throw new PathError("invalid", asked, `Path ${asked} leads through more than ${MAX_LINK_HOPS} symbolic links.`);
}

/** Returns the names in an opened directory, sorted. `complete` is false if there were too many to read. */
export async function readDirectory(opened: OpenedEntry): Promise<{ names: string[]; complete: boolean }> {
  const names: string[] = [];
  let complete = true;
  for await (const entry of await fs.promises.opendir(opened.pinnedPath)) {
    complete = names.length < MAX_DIRECTORY_ENTRIES;
    if (!complete) break;
    names.push(entry.name);
  }
  if (!sameObject(await fs.promises.stat(opened.pinnedPath), opened.stat)) throw changedMeanwhile(opened.path);
  return { names: names.sort(), complete };
}

/** True if `path` is a root or lies below one; `/work-evil` is not below `/work`. */
export function isInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`));
}

/** Returns the opened target of one step, or the target path of a symbolic link there. */
async function openStep(target: string, asked: string, scope: PathScope): Promise<OpenedEntry | string> {
  const folder = await (scope.openFolder ?? openFolderByDescriptor)(dirname(target));
  try {
    const leaf = basename(target);
    const realPath = join(folder.realPath, leaf);
    refuseUnlessAllowed(realPath, asked, scope);
    const leafPath = folder.child(leaf);
    // Opening a pipe can already wake the process at its other end, so check before opening.
    const before = await fs.promises.lstat(leafPath);
    if (before.isSymbolicLink()) return resolve(folder.realPath, await fs.promises.readlink(leafPath));
    kindOf(before, asked);
    const handle = await fs.promises.open(leafPath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    try {
      const stat = await handle.stat();
      const kind = kindOf(stat, asked);
      await folder.confirm(leaf, stat);
      return { path: asked, kind, handle, stat, pinnedPath: folder.pin(handle.fd, realPath) };
    } catch (error) {
      await handle.close();
      throw error;
    }
  } finally {
    await folder.close();
  }
}

/** An open folder whose real path is known. */
export interface OpenedFolder {
  readonly realPath: string;
  /** Returns a path that names `leaf` in exactly this folder. */
  child(leaf: string): string;
  /** Returns a path for a descriptor that was opened at `realPath`. */
  pin(fd: number, realPath: string): string;
  /** Throws if the opened `stat` may not be what `leaf` in this folder named. */
  confirm(leaf: string, stat: fs.Stats): Promise<void>;
  /** False if the folder has moved since it was opened. */
  inPlace(): Promise<boolean>;
  close(): Promise<void>;
}

export type OpenFolder = (path: string) => Promise<OpenedFolder>;

/**
 * Linux: the kernel reports the real path of a descriptor and opens names relative to it, so nothing can be replaced.
 */
export async function openFolderByDescriptor(path: string): Promise<OpenedFolder> {
  if (process.platform !== "linux") return openFolderByName(path);
  const handle = await fs.promises.open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  const pinned = `/proc/self/fd/${handle.fd}`;
  const realPath = await fs.promises.readlink(pinned).catch(() => undefined);
  if (realPath === undefined) {
    await handle.close();
    return openFolderByName(path);
  }
  return {
    realPath,
    child: (leaf) => `${pinned}/${leaf}`,
    pin: (fd) => `/proc/self/fd/${fd}`,
    confirm: async () => {},
    inPlace: async () => (await fs.promises.readlink(pinned)) === realPath,
    close: () => handle.close(),
  };
}

/**
 * Other systems: opens by real path, then checks more than once that the names still refer to what was opened. This
 * narrows the window for an unnoticed replacement; only descriptors close it.
 */
export async function openFolderByName(path: string): Promise<OpenedFolder> {
  const realPath = await fs.promises.realpath(path);
  const identity = await fs.promises.stat(realPath);
  const inPlace = async (): Promise<boolean> =>
    (await fs.promises.realpath(realPath)) === realPath && sameObject(await fs.promises.stat(realPath), identity);
  return {
    realPath,
    child: (leaf) => join(realPath, leaf),
    pin: (_fd, leafPath) => leafPath,
    async confirm(leaf, opened) {
      const leafPath = join(realPath, leaf);
      for (let round = 0; round < CONFIRMATIONS; round++) {
        const named = await fs.promises.lstat(leafPath);
        const foundAt = await fs.promises.realpath(leafPath);
        const unchanged = foundAt === leafPath && (await inPlace()) && sameObject(named, opened);
        if (!unchanged) throw changedMeanwhile(leafPath);
      }
    },
    inPlace,
    close: async () => {},
  };
}

export function sameObject(one: fs.Stats, other: fs.Stats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

export function absolutePath(path: string, cwd: string): string {
  const shown = JSON.stringify(path.slice(0, 200));
  if (path.length === 0) throw new PathError("invalid", path, "The path is empty. Please provide a valid path.");
  if (path.includes("\0")) throw new PathError("invalid", path, `The path ${shown} contains a NUL character.`);
  if (/^[\\/]{2}/.test(path)) throw new PathError("invalid", path, `Network paths such as ${shown} are not supported.`);
  const absolute = resolve(cwd, path);
  if (Buffer.byteLength(absolute) > MAX_PATH_BYTES) {
    throw new PathError("invalid", path, `The path ${shown}… is longer than ${MAX_PATH_BYTES} bytes.`);
  }
  if (isInside(absolute, SYSTEM_FOLDERS)) throw systemFolder(absolute);
  return absolute;
}

export function refuseUnlessAllowed(realPath: string, asked: string, scope: PathScope): void {
  if (isInside(realPath, SYSTEM_FOLDERS)) throw systemFolder(asked);
  if (scope.roots.length > 0 && !isInside(realPath, scope.roots)) throw outside(asked, realPath);
}

export function changedMeanwhile(path: string): PathError {
  return new PathError("invalid", path, `Path ${path} was changed while it was being opened. Try again.`);
}

function systemFolder(path: string): PathError {
  const folders = SYSTEM_FOLDERS.join(", ");
  return new PathError("special", path, `Path ${path} leads into a system folder (${folders}), which is never opened.`);
}

function outside(asked: string, realPath: string): PathError {
  const where = realPath === asked ? "is" : `leads to ${realPath}, which is`;
  const remedy = `The user can allow it with --add-dir ${dirname(realPath)} or --allow-all-paths.`;
  return new PathError("outside", asked, `Path ${asked} ${where} outside the allowed folders. ${remedy}`);
}

export function kindOf(stat: fs.Stats, path: string): "file" | "directory" {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  const kind = stat.isFIFO() ? "a named pipe" : stat.isSocket() ? "a socket" : "not a regular file";
  throw new PathError("special", path, `Path ${path} is ${kind}; only files and folders can be opened.`);
}

/** Converts an error for the caller. It reveals nothing about paths outside the roots, not even whether they exist. */
export async function explain(
  error: unknown,
  { asked, target, scope }: { asked: string; target: string; scope: PathScope },
): Promise<unknown> {
  if (error instanceof PathError || !(error instanceof Error) || !("code" in error)) return error;
  const ancestor = await nearestExisting(dirname(target));
  if (
    scope.roots.length > 0 &&
    !isInside(ancestor, scope.roots) &&
    !isInside(join(ancestor, basename(target)), scope.roots)
  ) {
    return outside(asked, target);
  }
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return new PathError("missing", asked, `Path ${asked} does not exist. Please provide a valid path.`);
    case "EACCES":
    case "EPERM":
      return new PathError("unreadable", asked, `Path ${asked} cannot be read: permission denied.`);
    case "ELOOP":
      return new PathError(
        "invalid",
        asked,
        `Path ${asked} is a loop of symbolic links or was changed while it was opened.`,
      );
    case "ENAMETOOLONG":
      return new PathError("invalid", asked, `Path ${asked.slice(0, 200)}… has a name that is too long.`);
    default:
      return new PathError("unreadable", asked, `Path ${asked} cannot be opened: ${error.message}`);
  }
}

async function nearestExisting(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const real = await fs.promises.realpath(at).catch(() => undefined);
    if (real !== undefined) return real;
    if (dirname(at) === at) return at;
  }
}
