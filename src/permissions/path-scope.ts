/** Matches paths in rules and commands after resolving links and `..`. */
import { globMatcher } from "../lib/glob-pattern.ts";
import { caseFold } from "./case-fold.ts";
import type { ProtectedPaths } from "./protected-paths.ts";

/** Returns the absolute real path that `path` names. Parts that do not exist yet are left as written. */
type ResolvePath = (path: string, cwd: string) => string;

export interface PermissionPathScope {
  /** Allowed folders as real paths. Empty: no limit. */
  readonly roots: readonly string[];
  readonly protectedPaths: ProtectedPaths;
  readonly resolvePath: ResolvePath;
  /** Returns true when the target of the path is not determined yet: `..` follows a part that does not exist. */
  isUnsettled(path: string, cwd: string): boolean;
  /** Returns true when an entry exists at this absolute path. */
  exists(path: string): boolean;
}

/** Returns true when `path` is one of the folders or below one. */
export function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`));
}

/**
 * Matches a path against a rule.
 * - An allow rule matches the path it names, its trailing segments, everything below a folder it names, and patterns.
 * Folders and patterns are relative to the working directory.
 * - A denial matches more: a name or a pattern anywhere in the path, and everything below it, in any spelling.
 */
export function pathRuleMatches(
  scope: PermissionPathScope,
  match: { rule: string; path: string; cwd: string; refusing: boolean },
): boolean {
  const real = scope.resolvePath(match.path, match.cwd);
  if (match.refusing) return refusalCovers(scope, { ...match, real, written: match.path });
  const isAbsolute = /^[/~]/.test(match.rule);
  if (!isAbsolute && !isBelow(real, scope.roots.length > 0 ? scope.roots : ["/"])) return false;
  if (isPathPattern(match.rule)) return patternMatcher(anchorPath(scope, match))(real);
  if (isBelow(real, [scope.resolvePath(match.rule, match.cwd)])) return true;
  return !isAbsolute && !match.rule.endsWith("/") && endsWithSegments(real, trimPath(match.rule));
}

/** Like `pathRuleMatches` for a denial, for a path that is already resolved. */
export function refusalCovers(
  scope: PermissionPathScope,
  match: { rule: string; real: string; written: string; cwd: string },
): boolean {
  const real = caseFold(match.real);
  const bare = match.rule.replace(/^(?:\*\*\/)+/, "").replace(/(?:\/\*\*)+\/?$/, "");
  const rule = bare === "" ? "**" : bare;
  if (isPathPattern(rule)) return patternRefuses(scope, { ...match, real, rule });
  if (isBelow(real, [caseFold(scope.resolvePath(rule, match.cwd))])) return true;
  if (/^[/~]/.test(rule)) return false;
  // The written name counts too: a link called .env is .env, whatever its target.
  const name = caseFold(trimPath(rule));
  return hasSegments(real, name) || hasSegments(caseFold(match.written), name);
}

/** Returns true for a rule with `*` or `?`. Brackets and braces are literal, because file names contain them. */
export const isPathPattern = (rule: string): boolean => /[*?]/.test(rule);

/** Throws a `GlobPatternError` for a pattern that is too long. */
export function patternMatcher(pattern: string): (path: string) => boolean {
  const matches = globMatcher(pattern.replace(/[\\[\]{}]/g, "\\$&"));
  return (path) => matches(path.replace(/^\/+/, ""));
}

function patternRefuses(
  scope: PermissionPathScope,
  match: { rule: string; real: string; written: string; cwd: string },
): boolean {
  const covers = (pattern: string, path: string): boolean =>
    patternMatcher(pattern)(path) || patternMatcher(`${pattern}/**`)(path);
  if (covers(caseFold(anchorPath(scope, match)), match.real)) return true;
  if (/^[/~]/.test(match.rule)) return false;
  const anywhere = `**/${caseFold(trimPath(match.rule))}`;
  return covers(anywhere, match.real) || covers(anywhere, caseFold(match.written));
}

/** Returns the pattern with its leading folders resolved. */
function anchorPath(scope: PermissionPathScope, { rule, cwd }: { rule: string; cwd: string }): string {
  const segments = trimPath(rule).split("/");
  const first = segments.findIndex(isPathPattern);
  const base = segments.slice(0, first).join("/");
  const root = scope.resolvePath(base === "" && rule.startsWith("/") ? "/" : base || ".", cwd);
  return [root.replace(/\/+$/, ""), ...segments.slice(first)].join("/");
}

function trimPath(path: string): string {
  return path.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
}

function endsWithSegments(path: string, tail: string): boolean {
  return path === tail || path.endsWith(`/${tail}`);
}

/** Returns true when the segments occur in the path, at its end or as a parent folder. */
function hasSegments(path: string, segments: string): boolean {
  return `/${path}/`.includes(`/${segments}/`);
}
