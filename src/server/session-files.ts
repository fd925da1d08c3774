/** Files of a session that its clients may read and write: all in `files/` of its folder, and nowhere else. */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Session } from "../session/session.ts";

const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 10_000;

export const filesFolderOf = (session: Session): string => join(session.settings.log.directory, "files");

export async function listSessionFiles(session: Session): Promise<string[]> {
  const folder = filesFolderOf(session);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .slice(0, MAX_FILES)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}

export async function readSessionFile(session: Session, path: string): Promise<string> {
  const place = await placeOf(session, path);
  const { size } = await stat(place).catch(() => {
    throw new TroupeError("usage", `There is no file ${path} among the session's files.`);
  });
  if (size > MAX_BYTES) throw new TroupeError("limit", `${path} has ${size} bytes; at most ${MAX_BYTES} are read.`);
  return readFile(place, "utf8");
}

/** Whole or not at all. Returns whether the file was there before. */
export async function writeSessionFile(session: Session, path: string, content: string): Promise<{ isNew: boolean }> {
  if (Buffer.byteLength(content) > MAX_BYTES) {
    throw new TroupeError("limit", `At most ${MAX_BYTES} bytes are written to a file of a session.`);
  }
  await nodeDisk.mkdir(filesFolderOf(session));
  const place = await placeOf(session, path);
  const isNew = await stat(place).then(
    () => false,
    () => true,
  );
  await nodeDisk.mkdir(dirname(place));
  await replaceFile(nodeDisk, place, content);
  return { isNew };
}

/** Refuses what would leave the folder, by its words or by links. */
async function placeOf(session: Session, path: string): Promise<string> {
  const folder = filesFolderOf(session);
  const place = resolve(folder, path);
  const real = await realOrNearest(place);
  const home = await realOrNearest(folder);
  if (place === folder || !`${real}${sep}`.startsWith(`${home}${sep}`) || real === home) {
    throw new TroupeError("usage", `${path} is outside the workspace files directory of the session.`);
  }
  return place;
}

/** Where a path really leads, as far as it exists. */
async function realOrNearest(path: string): Promise<string> {
  const found = await realpath(path).catch(() => undefined);
  if (found !== undefined) return found;
  const parent = dirname(path);
  return parent === path ? path : join(await realOrNearest(parent), relative(parent, path));
}
