/** Where paths really lead, for comparing them with rules. Whoever opens a path afterwards checks again. */
import * as fs from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

const MAX_LINK_HOPS = 40;

/** Follows links as far as they lead, also dangling ones; what does not exist is kept as it is written. */
export function realPathOf(path: string, cwd: string): string {
  const named = path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
  // A NUL cannot be part of a name, so nothing real is behind such a path.
  return follow(resolve(cwd, named.replaceAll("\0", "\uFFFD")), 0);
}

/** True when something is at this absolute path, or the folder it would stand in exists. */
export function isThere(path: string): boolean {
  return fs.existsSync(path) || fs.existsSync(dirname(path));
}

function follow(path: string, hops: number): string {
  try {
    return fs.realpathSync.native(path);
  } catch {
    const folder = dirname(path);
    if (folder === path || hops >= MAX_LINK_HOPS) return path;
    const target = linkTarget(path);
    if (target !== undefined) return follow(resolve(follow(folder, hops + 1), target), hops + 1);
    return join(follow(folder, hops), basename(path));
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return fs.readlinkSync(path);
  } catch {
    return undefined;
  }
}
