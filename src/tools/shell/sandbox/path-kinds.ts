/** Examines paths without throwing for missing ones. */
import { lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { sep } from "node:path";
import { isInside } from "../../../lib/node/paths.ts";

export type Kind = "missing" | "folder" | "file" | "link";

/** The workspace cannot be protected in its current state. */
export class Unprotectable extends Error {
  override readonly name = "Unprotectable";
}

/** Throws when the kind is unknown: a path that cannot be examined must not count as missing. */
export function kindOf(path: string): Kind {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return "missing";
    if (stat.isSymbolicLink()) return "link";
    return stat.isDirectory() ? "folder" : "file";
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOTDIR") return "missing";
    throw error;
  }
}

export function folders(paths: readonly string[]): string[] {
  const real = paths.map((path) => realPath(path)).filter((path) => path !== undefined && kindOf(path) === "folder");
  return [...new Set(real)].filter((path): path is string => path !== undefined && path !== sep);
}

/**
 * Returns undefined when nothing is there. Throws an `Unprotectable` for a path that leads to a name that is not valid
 * UTF-8: its text would name something else, or nothing. Outside the folders in `within`, such a path counts as
 * missing.
 */
export function realPath(path: string, within: readonly string[] = [sep]): string | undefined {
  const bytes = realBytes(path);
  const text = bytes?.toString();
  if (bytes === undefined || text === undefined || Buffer.from(text).equals(bytes)) return text;
  if (isInside(text, within)) throw oddName(path);
  return undefined;
}

export const oddName = (path: string): Unprotectable =>
  new Unprotectable(`${path} leads to a name that is not valid UTF-8. Rename it.`);

/** Checks for existence first: most paths do not exist, and resolving a missing one is slow. */
function realBytes(path: string): Buffer | undefined {
  try {
    const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined;
    return isThere ? realpathSync.native(path, { encoding: "buffer" }) : undefined;
  } catch {
    return undefined;
  }
}

export const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");

export function linkText(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** Returns device and inode of the object that a path leads to, or an empty text when there is none. */
export function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return "";
  }
}
