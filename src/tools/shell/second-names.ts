/** Finds other names of files that must be hidden: a hard link shows the same content. */
import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import { join, sep } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";

const YIELD_AFTER_MS = 12;

/**
 * Searches everything below these folders, including `node_modules` and `.git`, but only if one of the files has
 * another name. Throws when a name cannot be hidden because it is not valid text, or may be in an unreadable folder.
 */
export async function secondNames(files: readonly string[], folders: readonly string[]): Promise<string[]> {
  /** Number of names of each file that are not found yet. */
  const wanted = new Map<string, number>();
  for (const stat of files.map(statOf)) {
    if (stat?.isFile() && stat.nlink > 1) wanted.set(identityOf(stat), stat.nlink);
  }
  const known = new Set(files);
  const found: string[] = [];
  const waiting = wanted.size > 0 ? [...folders] : [];
  let unseen: string | undefined;
  let paused = performance.now();
  for (let folder = waiting.pop(); folder !== undefined && wanted.size > 0; folder = waiting.pop()) {
    const entries = entriesIn(folder);
    if (entries === undefined) unseen = folder;
    for (const entry of entries ?? []) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) waiting.push(path);
      if (entry.isDirectory() && entry.name.includes("\ufffd")) unseen = path;
      const stat = entry.isFile() ? statIn(folder, entry) : undefined;
      const left = stat && wanted.get(identityOf(stat));
      if (stat === undefined || left === undefined) continue;
      if (entry.name.includes("\ufffd"))
        throw new Error(`a file in ${folder} whose name is not valid UTF-8 is also a .env file. Remove it.`);
      if (!known.has(path)) found.push(path);
      if (left > 1) wanted.set(identityOf(stat), left - 1);
      else wanted.delete(identityOf(stat));
    }
    if (performance.now() - paused > YIELD_AFTER_MS) {
      await nextTick();
      paused = performance.now();
    }
  }
  if (wanted.size > 0 && unseen !== undefined)
    throw new Error(`a .env file has another name, which may lie in ${unseen}, where it cannot be searched for.`);
  return found;
}

/** Returns undefined if the folder cannot be listed. */
function entriesIn(folder: string): Dirent[] | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "ENOENT" || code === "ENOTDIR" ? [] : undefined;
  }
}

const identityOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`;

/** Returns the stat of an entry whose name may not be valid text. */
function statIn(folder: string, { name }: Dirent): Stats | undefined {
  if (!name.includes("\ufffd")) return statOf(join(folder, name));
  const bytes = readdirSync(folder, { encoding: "latin1" }).map((one) => Buffer.from(one, "latin1"));
  return bytes
    .filter((one) => one.toString("utf8") === name)
    .map((one) => statOf(Buffer.concat([Buffer.from(folder + sep), one])))
    .find((stat) => stat !== undefined && stat.nlink > 1);
}

function statOf(path: string | Buffer): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
