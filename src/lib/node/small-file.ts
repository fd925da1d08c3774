/** Reading small files that others may have put there: bounded, regular files only, and never out of a folder. */
import * as fs from "node:fs";
import { isInside } from "./paths.ts";

export type SmallFile =
  | { readonly kind: "missing" }
  /** Something is there that is not to be used; `reason` goes on after "it". */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "text"; readonly text: string; readonly realPath: string; readonly stat: fs.Stats };

export interface SmallFileLimits {
  readonly maxBytes: number;
  /** A real path: links are followed only as far as they stay below it. */
  readonly below?: string;
}

/** The whole text. A folder in the place of the file counts as missing, as does a file in the place of its folder. */
export function readSmallFile(path: string, limits: SmallFileLimits): SmallFile {
  const start = readStart(path, limits);
  if (start.kind === "missing") return start;
  if (start.kind === "special") return { kind: "refused", reason: "is not a regular file" };
  if (start.kind === "outside") return { kind: "refused", reason: `leads out of ${limits.below}` };
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

/** The whole text, whatever its bytes; undefined when it is missing or not to be used. */
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
      /** Of the whole file; more than `maxBytes` when it goes on after `bytes`. */
      readonly size: number;
      readonly realPath: string;
      readonly stat: fs.Stats;
    };

const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants;

/**
 * The first `maxBytes` of a regular file. What was opened is what is checked. Synchronous, because it stands on the way
 * to the first prompt, where hundreds of small files must cost milliseconds.
 */
export function readStart(path: string, limits: SmallFileLimits): FileStart {
  try {
    // A missing file costs this and nothing more. Opening a pipe could already wake its other end, so look first.
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

/** Some files have more to say than their size, and some grow while they are read. */
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

/** Of the opened file itself where the system tells, so that nobody can swap a link in between. */
function realPathOf(fd: number, path: string): string {
  if (process.platform !== "linux") return fs.realpathSync.native(path);
  try {
    return fs.readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return fs.realpathSync.native(path);
  }
}
