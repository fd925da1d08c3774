import { realpathSync } from "node:fs";

/** Returns the path without links, or undefined if it does not exist. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}
