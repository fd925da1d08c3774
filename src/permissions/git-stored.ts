/** Whether git has stored a file: then its content can be had from git, although the file itself is hidden. */
import * as fs from "node:fs";
import { join } from "node:path";

const MAX_INDEX_BYTES = 64 * 1024 * 1024;

/**
 * True when the index of one of these git folders holds the last name of the path, in any folder. Guesses "yes" where
 * the index cannot be searched. Versions that only older commits hold are not found.
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
    // Version 4 stores only the parts of names that differ from the name before.
    if (bytes.readUInt32BE(4) > 3) return true;
    const text = bytes.toString("utf8").toLowerCase();
    return name.test(text);
  } catch (error) {
    return !(error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"));
  }
}
