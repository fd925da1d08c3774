/** Lists folders at startup. Synchronous and bounded, so that hundreds take milliseconds. */
import * as fs from "node:fs";

export interface FolderRead {
  /** Sorted by name. Links are not followed. */
  readonly entries: readonly { readonly name: string; readonly kind: "file" | "folder" | "link" | "special" }[];
  readonly complete: boolean;
}

/** Returns `undefined` if the folder does not exist or cannot be read. */
export function readFolder(path: string, maxEntries: number): FolderRead | undefined {
  if (!fs.statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const entries: { name: string; kind: "file" | "folder" | "link" | "special" }[] = [];
  let directory: fs.Dir | undefined;
  try {
    directory = fs.opendirSync(path);
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (entries.length >= maxEntries) return { entries: sortByName(entries), complete: false };
      entries.push({ name: entry.name, kind: kindOf(entry) });
    }
    return { entries: sortByName(entries), complete: true };
  } catch {
    return undefined;
  } finally {
    directory?.closeSync();
  }
}

function kindOf(entry: fs.Dirent): "file" | "folder" | "link" | "special" {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "special";
}

function sortByName<T extends { name: string }>(entries: T[]): T[] {
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}
