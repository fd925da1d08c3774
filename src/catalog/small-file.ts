/** Reading small files that others may have put there: bounded, regular files only, and never out of a folder. */
import * as fs from "node:fs";
import { isInside } from "../lib/node/paths.ts";

export type SmallFile =
  | { readonly kind: "missing" }
  /** Something is there that is not to be used; `reason` goes on after "it". */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "text"; readonly text: string; readonly realPath: string; readonly stat: fs.Stats };

const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants;

/**
 * A folder in the place of the file counts as missing. With `below`, a real path, links are followed only as far as
 * they stay below it. Synchronous, because it stands on the way to the first prompt.
 */
export function readSmallFile(path: string, limits: { maxBytes: number; below?: string }): SmallFile {
  try {
    // A missing file costs this and nothing more. Opening a pipe could already wake its other end, so look first.
    const before = fs.statSync(path, { throwIfNoEntry: false });
    if (before === undefined || before.isDirectory()) return { kind: "missing" };
    const unfit = unfitness(before, limits.maxBytes);
    if (unfit !== undefined) return { kind: "refused", reason: unfit };
    const fd = fs.openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    try {
      return readOpened(fd, path, limits);
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    return code === "ENOENT" ? { kind: "missing" } : { kind: "refused", reason: `cannot be read (${code})` };
  }
}

function readOpened(fd: number, path: string, { maxBytes, below }: { maxBytes: number; below?: string }): SmallFile {
  const stat = fs.fstatSync(fd);
  const unfit = unfitness(stat, maxBytes);
  if (unfit !== undefined) return { kind: "refused", reason: unfit };
  const realPath = realPathOf(fd, path);
  if (below !== undefined && !isInside(realPath, [below])) {
    return { kind: "refused", reason: `leads out of ${below}` };
  }
  const bytes = Buffer.alloc(maxBytes + 1);
  let size = 0;
  while (size <= maxBytes) {
    const count = fs.readSync(fd, bytes, size, bytes.length - size, null);
    if (count === 0) break;
    size += count;
  }
  if (size > maxBytes) return { kind: "refused", reason: tooLarge(maxBytes) };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, size));
    return { kind: "text", text, realPath, stat };
  } catch {
    return { kind: "refused", reason: "is not UTF-8 text" };
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

function unfitness(stat: fs.Stats, maxBytes: number): string | undefined {
  if (!stat.isFile()) return "is not a regular file";
  return stat.size > maxBytes ? tooLarge(maxBytes) : undefined;
}

const tooLarge = (maxBytes: number): string => `is larger than ${Math.round(maxBytes / 1024)} KiB`;
