/** Reading at the start, where hundreds of small files must cost milliseconds: without waiting, and with an end. */
import * as fs from "node:fs";
import { isInside } from "../../lib/node/paths.ts";

export type FileRead =
  | { readonly ok: true; readonly text: string; readonly size: number }
  /** `missing` covers a folder where a file should be. */
  | { readonly ok: false; readonly problem: "missing" | "outside" | "unreadable" };

export interface FolderRead {
  /** Names in order; links are told apart from what they lead to. */
  readonly entries: readonly { readonly name: string; readonly kind: "file" | "folder" | "link" | "special" }[];
  readonly complete: boolean;
}

const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants;

/** The first `maxBytes` of a regular file, if its real path is inside `root`. What was opened is what is checked. */
export function readInside(path: string, { root, maxBytes }: { root: string; maxBytes: number }): FileRead {
  let fd: number | undefined;
  try {
    if (!fs.statSync(path, { throwIfNoEntry: false })?.isFile()) return { ok: false, problem: "missing" };
    fd = fs.openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    const stat = fs.fstatSync(fd);
    if (!stat.isFile()) return { ok: false, problem: "missing" };
    if (!isInside(realPathOf(fd, path), [root])) return { ok: false, problem: "outside" };
    const buffer = Buffer.allocUnsafe(Math.min(stat.size, maxBytes));
    const length = fs.readSync(fd, buffer, 0, buffer.length, 0);
    return { ok: true, text: buffer.toString("utf8", 0, length), size: stat.size };
  } catch {
    return { ok: false, problem: "unreadable" };
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

/** Undefined when there is no such folder, or none that may be read. */
export function readFolder(path: string, maxEntries: number): FolderRead | undefined {
  if (!fs.statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const entries: { name: string; kind: "file" | "folder" | "link" | "special" }[] = [];
  let directory: fs.Dir | undefined;
  try {
    directory = fs.opendirSync(path);
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (entries.length >= maxEntries) return { entries: sorted(entries), complete: false };
      entries.push({ name: entry.name, kind: kindOf(entry) });
    }
    return { entries: sorted(entries), complete: true };
  } catch {
    return undefined;
  } finally {
    directory?.closeSync();
  }
}

/** Undefined when it leads nowhere. */
export function realPath(path: string): string | undefined {
  try {
    return fs.realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** On Linux the kernel says what a descriptor is; elsewhere the name is asked once more. */
function realPathOf(fd: number, path: string): string {
  return process.platform === "linux" ? fs.readlinkSync(`/proc/self/fd/${fd}`) : fs.realpathSync.native(path);
}

function kindOf(entry: fs.Dirent): "file" | "folder" | "link" | "special" {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "special";
}

function sorted<T extends { name: string }>(entries: T[]): T[] {
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}
