/** Stores assets by hash and large texts by number in a session's folder, and reads them back. */

import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Disk, replaceFile, writeNewFile } from "../lib/node/disk.ts";
import { filesInShared, readShared } from "../lib/node/shared-folder.ts";
import { TroupeError } from "../protocol/errors.ts";
import { errorCode } from "./storage-error.ts";

const MAX_FILE_BYTES = 64 * 1024 * 1024;
const MAX_NAMES = 100_000;
const ASSET_ID = /^sha256:([0-9a-f]{64})$/;

/** Stores the bytes in `folder` under their hash. The same bytes are stored once, whatever their extension. */
export async function writeAsset(
  disk: Disk,
  folder: string,
  asset: { data: Uint8Array; extension: string },
): Promise<{ assetId: string; path: string }> {
  checkSize(asset.data.byteLength);
  const { assetId, hash } = nameAsset(asset.data);
  await disk.mkdir(folder);
  const existing = findAsset(await listNames(folder), hash);
  if (existing !== undefined) return { assetId, path: join(folder, existing) };
  const path = join(folder, `${hash}${cleanExtension(asset.extension)}`);
  await replaceFile(disk, path, asset.data);
  await disk.syncDirectory(folder);
  return { assetId, path };
}

/** Folders of a session with assets and large outputs. Older versions stored them in `files`. */
interface RecordFolders {
  readonly records: string;
  readonly files: string;
}

/** Returns `undefined` if there is no such asset, or if its bytes are not the ones that were stored. */
export async function readAsset({ records, files }: RecordFolders, assetId: string): Promise<Uint8Array | undefined> {
  const hash = ASSET_ID.exec(assetId)?.[1];
  if (hash === undefined) return undefined;
  const stored = findAsset(await listNames(records), hash);
  const old = stored === undefined ? findAsset(await oldNames(files), hash) : undefined;
  const name = stored ?? old;
  const data = name === undefined ? undefined : await readIfSafe(old === undefined ? records : files, name);
  return data && nameAsset(data).assetId === assetId ? data : undefined;
}

/**
 * Returns the text that was stored under this path, or `undefined` if it is gone. Uses only the last two names of the
 * path, so that no path in a log leads outside the session's own folders.
 */
export async function readNumbered({ records, files }: RecordFolders, path: string): Promise<string | undefined> {
  const isOld = basename(dirname(path)) === basename(files);
  return (await readIfSafe(isOld ? files : records, basename(path)))?.toString("utf8");
}

/** Returns `undefined` for a name outside the folder, a file that is not a regular file, and a failed read. */
const readIfSafe = (folder: string, name: string): Promise<Buffer | undefined> =>
  readShared(folder, name, MAX_FILE_BYTES).catch(() => undefined);

/** Stores a text under a new name, numbered in the order of the calls, and returns its path. */
export async function writeNumbered(
  disk: Disk,
  folder: string,
  file: { name: string; content: string },
): Promise<string> {
  const bytes = Buffer.from(file.content);
  checkSize(bytes.length);
  await disk.mkdir(folder);
  for (let number = (await highestNumber(folder)) + 1; ; number++) {
    const path = join(folder, `${number}-${cleanName(file.name)}`);
    try {
      await writeNewFile(disk, path, [bytes]);
      return path;
    } catch (error) {
      if (errorCode(error) === "EEXIST") continue;
      await disk.unlink(path).catch(() => undefined);
      throw error;
    }
  }
}

export function nameAsset(data: Uint8Array): { assetId: string; hash: string } {
  const hash = createHash("sha256").update(data).digest("hex");
  return { assetId: `sha256:${hash}`, hash };
}

/** Returns a name that is a valid file name on every system. */
export function cleanName(name: string): string {
  return (
    name
      .replace(/[^A-Za-z0-9._-]+/g, "_")
      .replace(/^\.+/, "")
      .slice(-100) || "file"
  );
}

export function cleanExtension(extension: string): string {
  const letters = extension.replace(/[^A-Za-z0-9]/g, "").slice(0, 16);
  return letters === "" ? "" : `.${letters}`;
}

export function checkSize(bytes: number): void {
  if (bytes <= MAX_FILE_BYTES) return;
  throw new TroupeError("storage", `A file of ${bytes} bytes is too large to store with the session.`, {
    hint: `A stored file can have at most ${MAX_FILE_BYTES} bytes.`,
  });
}

async function oldNames(files: string): Promise<string[]> {
  return (await filesInShared(files, { maxFiles: MAX_NAMES, maxDepth: 0 })).map(({ path }) => path);
}

function findAsset(names: readonly string[], hash: string): string | undefined {
  return names.find((name) => (name === hash || name.startsWith(`${hash}.`)) && !name.endsWith(".tmp"));
}

async function highestNumber(folder: string): Promise<number> {
  const numbers = (await listNames(folder)).map((name) => Number(/^(\d{1,9})-/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...numbers);
}

async function listNames(folder: string): Promise<string[]> {
  return await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  });
}
