/** Repairs a log so that the next line can be appended. Every step may be interrupted and repeated. */
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Disk, writeNewFile } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Damage } from "../damage.ts";
import { errorCode } from "../storage-error.ts";
import { decodeLine, type RecordLink } from "./line.ts";
import type { LogContent } from "./read-log.ts";

const PIECE_BYTES = 1024 * 1024;

/** Moves torn bytes at the end of the log to `damaged/` and adds a missing newline. Returns the damage, if any. */
export async function repairTail(options: {
  disk: Disk;
  directory: string;
  path: string;
  content: LogContent;
}): Promise<Damage | undefined> {
  const { disk, path, content } = options;
  const { tail } = content;
  if (tail.kind === "clean") return undefined;
  let damage: Damage | undefined;
  if (tail.kind === "torn") {
    damage = { ...tail.damage, savedTo: await saveBytes(options, tail.damage) };
    await disk.truncate(path, content.length);
  }
  const fd = await disk.openAppend(path);
  try {
    if (tail.kind === "open" || tail.newline === "missing") await disk.write(fd, Buffer.from("\n"));
    await disk.sync(fd);
  } finally {
    await disk.close(fd);
  }
  return damage;
}

/** The known good part of a log. */
export interface Position {
  /** Acknowledged bytes. */
  readonly length: number;
  /** Bytes that survive a power cut. */
  readonly synced: number;
  readonly last: RecordLink;
  /** Length of the last line including its newline; 0 if unknown. */
  readonly lastLine: number;
  /** A sync failed: bytes between `synced` and `length` may be missing on disk although they can be read. */
  readonly doubtful: boolean;
}

/**
 * Restores the log after a failed write or sync. Cuts off unacknowledged bytes, and rewrites bytes that may not be on
 * disk. Throws when another program changed the log.
 */
export async function restoreLog(disk: Disk, path: string, known: Position): Promise<void> {
  const size = await stat(path).then(
    (found) => found.size,
    (error: unknown) => {
      if (errorCode(error) === "ENOENT" && known.length === 0) return 0;
      throw error;
    },
  );
  if (size < known.length || !(await endsWith(path, known))) {
    throw new TroupeError("storage", `${path} was changed by another program while this session wrote it.`, {
      hint: "Open the session again. The file will be checked and used as it is now.",
    });
  }
  if (size > known.length) await disk.truncate(path, known.length);
  if (known.doubtful && known.synced < known.length) await rewrite(disk, path, known.length);
}

async function endsWith(path: string, known: Position): Promise<boolean> {
  if (known.lastLine === 0) return true;
  const pieces: Buffer[] = [];
  for await (const piece of readRange(path, known.length - known.lastLine, known.length)) pieces.push(piece);
  const decoded = decodeLine(Buffer.concat(pieces).subarray(0, -1));
  return decoded.kind === "record" && decoded.seq === known.last.seq && decoded.crc === known.last.crc;
}

/** Writes a new file: after a failed sync the kernel may treat unwritten pages as written. */
async function rewrite(disk: Disk, path: string, length: number): Promise<void> {
  const temporary = `${path}.recovering`;
  await disk.unlink(temporary).catch(ignoreMissing);
  await writeNewFile(disk, temporary, readRange(path, 0, length));
  await disk.rename(temporary, path);
}

async function saveBytes(
  options: { disk: Disk; directory: string; path: string },
  position: { offset: number; bytes: number },
): Promise<string> {
  const { disk, directory, path } = options;
  const folder = join(directory, "damaged");
  await disk.mkdir(folder);
  for (let copy = 1; ; copy++) {
    const target = join(folder, copy === 1 ? `${position.offset}.bin` : `${position.offset}-${copy}.bin`);
    const range = { path, start: position.offset, end: position.offset + position.bytes };
    const existing = await stat(target).catch(ignoreMissing);
    if (existing && !(await holds(target, existing.size, range))) continue;
    if (!existing) {
      const temporary = `${target}.tmp`;
      await disk.unlink(temporary).catch(ignoreMissing);
      await writeNewFile(disk, temporary, readRange(range.path, range.start, range.end));
      await disk.rename(temporary, target);
    }
    await disk.syncDirectory(folder);
    await disk.syncDirectory(directory);
    return target;
  }
}

/** True if an interrupted repair already saved the same bytes. */
async function holds(
  target: string,
  size: number,
  range: { path: string; start: number; end: number },
): Promise<boolean> {
  if (size !== range.end - range.start) return false;
  const saved = readRange(target, 0, size);
  try {
    for await (const piece of readRange(range.path, range.start, range.end)) {
      const other = await saved.next();
      if (other.done || !piece.equals(other.value)) return false;
    }
    return true;
  } finally {
    await saved.return();
  }
}

async function* readRange(path: string, start: number, end: number): AsyncGenerator<Buffer, void> {
  const file = await open(path, "r");
  try {
    for (let position = start; position < end; ) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, end - position));
      const { bytesRead } = await file.read(piece, 0, piece.length, position);
      if (bytesRead === 0) throw new Error(`${path} ends before byte ${end}`);
      yield piece.subarray(0, bytesRead);
      position += bytesRead;
    }
  } finally {
    await file.close();
  }
}

function ignoreMissing(error: unknown): undefined {
  if (errorCode(error) !== "ENOENT") throw error;
}
