/** Reads small untrusted files: bounded, regular files only, and never outside of a folder. */
import * as fs from "node:fs";
import { isInside } from "./paths.ts";

export type SmallFile =
  | { readonly kind: "missing" }
  /** The entry must not be used. `reason` continues a sentence after "it". */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "text"; readonly text: string; readonly realPath: string; readonly stat: fs.Stats };

export interface SmallFileLimits {
  readonly maxBytes: number;
  /** A real path: links are followed only while they stay below it. */
  readonly below?: string;
}

/** Returns the whole text. A folder in place of the file counts as missing, as does a file in place of its folder. */
export function readSmallFile(path: string, limits: SmallFileLimits): SmallFile {
  const start = readStart(path, limits);
  if (start.kind === "missing") return start;
  if (start.kind === "special") return { kind: "refused", reason: "is not a regular file" };
  if (start.kind === "outside") return { kind: "refused", reason: `leads outside ${limits.below}` };
  if (start.kind === "unreadable") return { kind: "refused", reason: `cannot be read (${start.code})` };
  if (start.size > limits.maxBytes)
    return { kind: "refused", reason: `is larger than ${Math.round(limits.maxBytes / 1024)} KiB` };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(start.bytes);
    return { kind: "text", text, realPath: start.realPath, stat: start.stat };
  } catch {
    return { kind: "refused", reason: "is not UTF-8 text" };
  }
}

/** Returns the whole text, whatever its bytes; undefined if it is missing or must not be used. */
export function smallText(path: string, maxBytes: number): string | undefined {
  const start = readStart(path, { maxBytes });
  return start.kind === "read" && start.size <= maxBytes ? start.bytes.toString("utf8") : undefined;
}

export type FileStart =
  | { readonly kind: "missing" }
  | { readonly kind: "special" }
  | { readonly kind: "outside" }
  | { readonly kind: "unreadable"; readonly code: string }
  | {
      readonly kind: "read";
      readonly bytes: Buffer;
      /** Size of the whole file; more than `maxBytes` if it continues after `bytes`. */
      readonly size: number;
      readonly realPath: string;
      readonly stat: fs.Stats;
    };

const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants;

/**
 * Returns the first `maxBytes` of a regular file. Checks the opened file itself. Synchronous, because it runs before
 * the first prompt, where hundreds of small files must take milliseconds.
 */
export function readStart(path: string, limits: SmallFileLimits): FileStart {
  try {
    // The only cost of a missing file. Opening a pipe could already wake its other end, so check first.
    const before = fs.statSync(path, { throwIfNoEntry: false });
    if (before === undefined || before.isDirectory()) return { kind: "missing" };
    if (!before.isFile()) return { kind: "special" };
    const fd = fs.openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    try {
      return readOpened(fd, path, limits);
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    return code === "ENOENT" || code === "ENOTDIR" ? { kind: "missing" } : { kind: "unreadable", code };
  }
}

function readOpened(fd: number, path: string, { maxBytes, below }: SmallFileLimits): FileStart {
  const stat = fs.fstatSync(fd);
  if (!stat.isFile()) return { kind: "special" };
  const realPath = realPathOf(fd, path);
  if (below !== undefined && !isInside(realPath, [below])) return { kind: "outside" };
  const found = readAll(fd, { expected: stat.size, maxBytes: maxBytes + 1 });
  const size = Math.max(found.length, stat.size);
  return { kind: "read", bytes: found.subarray(0, maxBytes), size, realPath, stat };
}

/** Some files have more content than their reported size, and some grow while they are read. */
function readAll(fd: number, { expected, maxBytes }: { expected: number; maxBytes: number }): Buffer {
  let bytes = Buffer.allocUnsafe(Math.min(expected + 1, maxBytes));
  let length = 0;
  for (;;) {
    const count = fs.readSync(fd, bytes, length, bytes.length - length, null);
    length += count;
    if (count === 0 || length === maxBytes) return bytes.subarray(0, length);
    if (length === bytes.length) bytes = Buffer.concat([bytes], maxBytes);
  }
}

/** Returns the path of the opened file itself if the system reports it, so that no link can be swapped in between. */
function realPathOf(fd: number, path: string): string {
  if (process.platform !== "linux") return fs.realpathSync.native(path);
  try {
    return fs.readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return fs.realpathSync.native(path);
  }
}
