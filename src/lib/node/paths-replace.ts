/** The single steps of a write, each through the descriptor of an open folder: see `paths-write.ts`. */
import * as fs from "node:fs";
import type { Disk } from "./disk.ts";
import { changedMeanwhile, type OpenedFolder, PathError, sameObject } from "./paths.ts";
import { temporaryName } from "./temporaries.ts";

const NEW_FILE_MODE = 0o644;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants;

export interface Replacement {
  readonly content: Uint8Array;
  readonly mode: number | undefined;
  readonly stat: fs.Stats | undefined;
  readonly folder: OpenedFolder;
  readonly leaf: string;
  readonly disk: Disk;
  readonly asked: string;
}

export async function replace({ content, mode, stat, folder, leaf, disk, asked }: Replacement): Promise<fs.Stats> {
  const temporary = folder.child(temporaryName());
  const fd = await disk.openExclusive(temporary);
  try {
    let written: fs.Stats;
    try {
      await disk.write(fd, content);
      await disk.sync(fd);
      if (stat) await keepOwner(fd, stat);
      await changeMode(fd, (mode ?? NEW_FILE_MODE & ~process.umask()) & 0o7777);
      written = fs.fstatSync(fd);
    } finally {
      await disk.close(fd);
    }
    await refuseIfChanged(folder, leaf, { stat, asked });
    await disk.rename(temporary, folder.child(leaf));
    await folder.confirm(leaf, written);
    await disk.syncDirectory(folder.child("."));
    return written;
  } catch (error) {
    await disk.unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** The last check before a change: the folder has not moved, and its entry is the one that was checked. */
export async function refuseIfChanged(
  folder: OpenedFolder,
  leaf: string,
  { stat, asked }: { stat: fs.Stats | undefined; asked: string },
): Promise<void> {
  const now = await statIfExists(folder.child(leaf));
  const same = stat === undefined ? now === undefined : now !== undefined && sameVersion(now, stat);
  if (!same || !(await folder.inPlace())) throw changedMeanwhile(asked);
}

export async function readWhole(
  path: string,
  { stat, maxBytes, asked }: { stat: fs.Stats | undefined; maxBytes: number; asked: string },
): Promise<Buffer> {
  if (stat?.isSymbolicLink()) return Buffer.from(await fs.promises.readlink(path));
  if (stat && stat.size > maxBytes) {
    throw new PathError(
      "too-large",
      asked,
      `${asked} has ${stat.size} bytes. Files above ${maxBytes} bytes cannot be edited.`,
    );
  }
  const handle = await fs.promises.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const opened = await handle.stat();
    if (!stat || !opened.isFile() || !sameVersion(opened, stat)) throw changedMeanwhile(asked);
    const content = Buffer.alloc(opened.size);
    let filled = 0;
    while (filled < content.length) {
      const { bytesRead } = await handle.read(content, filled, content.length - filled, filled);
      if (bytesRead === 0) throw changedMeanwhile(asked);
      filled += bytesRead;
    }
    return content;
  } finally {
    await handle.close();
  }
}

export function writeFailure(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (error instanceof PathError || code === undefined) return error;
  const reason = reasons[code] ?? (error instanceof Error ? error.message : code);
  return new PathError("unreadable", path, `Path ${path} cannot be written: ${reason}.`);
}

const reasons: Record<string, string> = {
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EIO: "the disk reported an error",
  ENOTEMPTY: "the folder is not empty",
  ENAMETOOLONG: "a part of the path is too long",
  ENOENT: "its folder was removed",
};

function sameVersion(one: fs.Stats, other: fs.Stats): boolean {
  return sameObject(one, other) && one.size === other.size && one.mtimeMs === other.mtimeMs;
}

export async function statIfExists(path: string): Promise<fs.Stats | undefined> {
  return await fs.promises.lstat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
}

/** Restores the owner of the file. A user without that permission keeps it as their own. */
async function keepOwner(fd: number, { uid, gid }: fs.Stats): Promise<void> {
  const now = fs.fstatSync(fd);
  if (now.uid === uid && now.gid === gid) return;
  await new Promise<void>((done) => fs.fchown(fd, uid, gid, () => done()));
}

function changeMode(fd: number, mode: number): Promise<void> {
  return new Promise((done, reject) => fs.fchmod(fd, mode, (error) => (error ? reject(error) : done())));
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
