/**
 * Inspects, creates, removes and renames entries of a folder that sandboxed commands can change: see
 * `shared-folder.ts`. The last name of a path is never followed, and its folder must lie inside.
 */
import type * as fs from "node:fs";
import { type Disk, nodeDisk } from "./disk.ts";
import { absolutePath, openFolderByDescriptor, PathError } from "./paths.ts";
import { openAsIs } from "./paths-write.ts";
import { rootOf } from "./shared-folder.ts";

const FOLDER_MODE = 0o700;

/** Returns the entry of this name, a link itself; `undefined` if there is none. */
export async function statSharedEntry(folder: string, path: string): Promise<fs.Stats | undefined> {
  const root = await rootOf(folder).catch(() => undefined);
  if (root === undefined) return undefined;
  const target = await openAsIs(path, { cwd: root, roots: [root] });
  await target.close();
  return target.stat;
}

/** Creates a folder. Throws if another entry has its name, or if its parent is missing and `recursive` is not set. */
export async function makeSharedFolder(
  folder: string,
  path: string,
  { recursive, disk = nodeDisk }: { recursive: boolean; disk?: Disk },
): Promise<void> {
  await disk.mkdir(folder);
  const root = await rootOf(folder);
  const target = await openAsIs(path, { cwd: root, roots: [root], disk });
  try {
    if (target.stat && !(recursive && target.stat.isDirectory())) throw taken(path);
    if (target.missingFolders.length > 0 && !recursive) {
      throw new PathError("missing", path, `The folder of ${path} does not exist. Set recursive to create it.`);
    }
    if (!target.stat) await target.makeFolder(FOLDER_MODE);
  } finally {
    await target.close();
  }
}

/** Removes a file, a link or a folder. A folder that is not empty is removed with `recursive` only. */
export async function removeSharedEntry(
  folder: string,
  path: string,
  { recursive, disk = nodeDisk }: { recursive: boolean; disk?: Disk },
): Promise<boolean> {
  const root = await rootOf(folder).catch(() => undefined);
  if (root === undefined) return false;
  const target = await openAsIs(path, { cwd: root, roots: [root], disk });
  try {
    if (target.stat === undefined) return false;
    if (!recursive || !target.stat.isDirectory()) await target.remove();
  } finally {
    await target.close();
  }
  if (recursive && target.stat.isDirectory()) await inFolder(root, path, (at) => disk.remove(at));
  return true;
}

/** Renames an entry, in the same folder or to another one. Throws if the new name exists. */
export async function renameSharedEntry(
  folder: string,
  names: { readonly from: string; readonly to: string },
  disk: Disk = nodeDisk,
): Promise<void> {
  const { from, to } = names;
  const root = await rootOf(folder);
  if ((await statSharedEntry(folder, from)) === undefined) {
    throw new PathError("missing", from, `There is no ${from} among the files.`);
  }
  if ((await statSharedEntry(folder, to)) !== undefined) throw taken(to);
  await inFolder(root, from, (source) => inFolder(root, to, (target) => disk.rename(source, target)));
}

const taken = (path: string): PathError => new PathError("special", path, `${path} already exists.`);

/** Calls back with a path that leads through the descriptor of the entry's folder. */
async function inFolder<T>(root: string, path: string, use: (at: string) => Promise<T>): Promise<T> {
  const target = await openAsIs(path, { cwd: root, roots: [root] });
  await target.close();
  const whole = absolutePath(path, root);
  const parent = await openFolderByDescriptor(whole.slice(0, whole.lastIndexOf("/")) || "/");
  try {
    const leaf = whole.slice(whole.lastIndexOf("/") + 1);
    if (`${parent.realPath}/${leaf}` !== target.realPath) {
      throw new PathError("outside", path, `${path} was changed by another program. Try again.`);
    }
    return await use(parent.child(leaf));
  } finally {
    await parent.close();
  }
}
