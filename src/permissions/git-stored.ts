/**
 * Checks whether git has stored a file. If so, its content can be read through git even when the file itself is hidden.
 */
import * as fs from "node:fs";
import { join } from "node:path";

const MAX_INDEX_BYTES = 64 * 1024 * 1024;

/**
 * Returns true when the index of one of these git folders contains the last name of the path, in any folder. Returns
 * true when the index cannot be searched. Versions that exist only in older commits are not found.
 */
export function isStoredByGit(path: string, gitFolders: readonly string[]): boolean {
  const name = path.split("/").findLast((part) => part !== "" && part !== "**");
  if (name === undefined) return gitFolders.length > 0;
  const wanted = new RegExp(`${patternSource(name.toLowerCase())}[\\0/]`);
  return gitFolders.some((folder) => holds(folder, wanted));
}

function patternSource(name: string): string {
  const literal = name.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return literal.replace(/\*+/g, "[^\\0/]*").replaceAll("?", "[^\\0/]");
}

function holds(folder: string, name: RegExp): boolean {
  const file = join(folder, "index");
  try {
    if (fs.readdirSync(folder).some((entry) => entry.startsWith("sharedindex."))) return true;
    if (fs.statSync(file).size > MAX_INDEX_BYTES) return true;
    const bytes = fs.readFileSync(file);
    // Version 4 stores only the part of a name that differs from the previous name.
    if (bytes.readUInt32BE(4) > 3) return true;
    const text = bytes.toString("utf8").toLowerCase();
    return name.test(text);
  } catch (error) {
    return !(error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"));
  }
}
