/**
 * Removes a folder with its contents, also while a command is changing it. Each folder is opened without following
 * links and emptied through its descriptor, so replacing a folder with a link meanwhile has no effect.
 */
import * as fs from "node:fs";

const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
/** Every level holds a descriptor. Folders below this level are moved up to the first one. */
const MAX_DEPTH = 64;
/** Bounds the work if a command creates new entries all the time. */
const MAX_ROUNDS = 10_000;

/** A missing path is not an error. A link is removed itself. */
export async function removeTree(path: string): Promise<void> {
  if (process.platform !== "linux" || !fs.existsSync("/proc/self/fd"))
    return fs.promises.rm(path, { recursive: true, force: true });
  // An empty folder need not be opened.
  if (await removedEmpty(path)) return;
  const folder = await openFolder(path);
  if (folder === undefined) return removeEntry(path);
  try {
    await empty(folder, { top: folder, depth: 1 });
  } finally {
    await folder.close();
  }
  await fs.promises.rmdir(path).catch(ignoreGone);
}

type Folder = fs.promises.FileHandle;

async function empty(folder: Folder, { top, depth }: { top: Folder; depth: number }): Promise<void> {
  // Moving folders up adds names to the first level, so that one is read until it is empty.
  for (let round = 0, again = true; again && round < MAX_ROUNDS; round++) {
    again = false;
    for (const entry of await fs.promises.readdir(pinned(folder), { encoding: "buffer", withFileTypes: true })) {
      const path = Buffer.concat([Buffer.from(`${pinned(folder)}/`), entry.name]);
      const inner = entry.isDirectory() ? await openFolder(path) : undefined;
      if (inner === undefined) await removeEntry(path);
      else if (depth < MAX_DEPTH) {
        try {
          await empty(inner, { top, depth: depth + 1 });
        } finally {
          await inner.close();
        }
        await fs.promises.rmdir(path).catch(ignoreGone);
      } else {
        await inner.close();
        await fs.promises.rename(path, `${pinned(top)}/.deep-${crypto.randomUUID()}`).catch(ignoreGone);
      }
      again = folder === top;
    }
  }
}

const pinned = (folder: Folder): string => `/proc/self/fd/${folder.fd}`;

const removedEmpty = (path: string): Promise<boolean> =>
  fs.promises.rmdir(path).then(
    () => true,
    (error: unknown) => codeOf(error) === "ENOENT",
  );

/** Returns undefined if there is no folder of this name. */
async function openFolder(path: string | Buffer): Promise<Folder | undefined> {
  try {
    return await fs.promises.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) return undefined;
    throw error;
  }
}

const removeEntry = (path: string | Buffer): Promise<void> => fs.promises.unlink(path).catch(ignoreGone);

function ignoreGone(error: unknown): void {
  if (!["ENOENT", "ENOTDIR"].includes(codeOf(error))) throw error;
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");
