/**
 * Resolves paths as the kernel does, to compare them with rules. The result is for comparison only: code that opens a
 * path later must check again.
 */
import * as fs from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";

const MAX_LINK_HOPS = 40;

/** Follows links before `..`, including dangling links. Parts that do not exist stay as written. */
export function realPathOf(path: string, cwd: string): string {
  return lookUp(path, cwd).path;
}

/**
 * Returns true when `..` follows a part that does not exist, or links form a loop: the target is not determined yet.
 */
export function isUnsettled(path: string, cwd: string): boolean {
  return !lookUp(path, cwd).settled;
}

interface LookUp {
  readonly path: string;
  readonly settled: boolean;
}

function lookUp(path: string, cwd: string): LookUp {
  const named = path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
  // A name cannot contain NUL, so nothing exists at such a path.
  const clean = named.replaceAll("\0", "\uFFFD");
  const whole = isAbsolute(clean) ? clean : `${resolve(cwd)}/${clean}`;
  try {
    return { path: fs.realpathSync.native(whole), settled: true };
  } catch {
    return walk(whole);
  }
}

/** Resolves component by component, for a path whose end does not exist. */
function walk(whole: string): LookUp {
  const parts = whole.split("/").reverse();
  let at = "/";
  let hops = 0;
  let missing = 0;
  let settled = true;
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      settled &&= missing === 0;
      missing = Math.max(0, missing - 1);
      at = dirname(at);
      continue;
    }
    const next = at === "/" ? `/${part}` : `${at}/${part}`;
    const target = missing > 0 ? undefined : linkTarget(next);
    if (target === undefined) {
      if (missing > 0 || !exists(next)) missing++;
      at = next;
    } else if (++hops > MAX_LINK_HOPS) return { path: resolve(whole), settled: false };
    else {
      if (isAbsolute(target)) at = "/";
      parts.push(...target.split("/").reverse());
    }
  }
  return { path: at, settled };
}

/** Returns true when an entry exists at this absolute path, including a dangling link. */
export function exists(path: string): boolean {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return fs.readlinkSync(path);
  } catch {
    return undefined;
  }
}
