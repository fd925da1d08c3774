/** Looks at paths without throwing for missing ones. */
import { lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { sep } from "node:path";

export type Kind = "missing" | "folder" | "file" | "link";

/** Throws when it cannot tell: a path that cannot be looked at must not count as missing. */
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
  const real = paths.map(realPath).filter((path) => path !== undefined && kindOf(path) === "folder");
  return [...new Set(real)].filter((path): path is string => path !== undefined && path !== sep);
}

/** Most paths that are asked for do not exist, and resolving one of those is slow. */
export function realPath(path: string): string | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : realpathSync.native(path);
  } catch {
    return undefined;
  }
}

export function linkText(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

export function identityOf(path: string | undefined): string {
  const stat = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}
