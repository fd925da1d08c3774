/** Paths in rules and in commands, compared after links and `..` are resolved. */
import { fold } from "./fold.ts";
import type { ProtectedPlaces } from "./protected-paths.ts";

/** The absolute real path of what `path` would name; parts that do not exist yet are kept as they are. */
type ResolvePath = (path: string, cwd: string) => string;

export interface PathScope {
  /** Allowed folders as real paths. Empty = no limit. */
  readonly roots: readonly string[];
  readonly places: ProtectedPlaces;
  readonly resolvePath: ResolvePath;
  /** True when it cannot be told yet where the path leads: `..` follows a part that does not exist. */
  isUnsettled(path: string, cwd: string): boolean;
  /** True when something is at this absolute path. */
  exists(path: string): boolean;
}

/** True when `path` is one of the folders or lies below one. */
export function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`));
}

/**
 * A rule's path matches when it is the path, or its trailing segments. A refusal also matches everything below a
 * folder it names, in any spelling.
 */
export function pathRuleMatches(
  scope: PathScope,
  match: { rule: string; path: string; cwd: string; refusing: boolean },
): boolean {
  const real = scope.resolvePath(match.path, match.cwd);
  if (match.refusing) return refusalCovers(scope, { ...match, real, written: match.path });
  if (/^[/~]/.test(match.rule)) return real === scope.resolvePath(match.rule, match.cwd);
  return endsWithSegments(real, cleaned(match.rule)) && isBelow(real, scope.roots.length > 0 ? scope.roots : ["/"]);
}

/** As `pathRuleMatches` for a refusal, of a path that is resolved already. */
export function refusalCovers(
  scope: PathScope,
  match: { rule: string; real: string; written: string; cwd: string },
): boolean {
  const real = fold(match.real);
  if (isBelow(real, [fold(scope.resolvePath(match.rule, match.cwd))])) return true;
  if (/^[/~]/.test(match.rule)) return false;
  // The name as it was written counts too: a link called .env is .env, wherever it leads.
  const rule = fold(cleaned(match.rule));
  return hasSegments(real, rule) || hasSegments(fold(match.written), rule);
}

function cleaned(path: string): string {
  return path.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
}

function endsWithSegments(path: string, tail: string): boolean {
  return path === tail || path.endsWith(`/${tail}`);
}

/** The segments stand somewhere in the path, at its end or as a folder on the way. */
function hasSegments(path: string, segments: string): boolean {
  return `/${path}/`.includes(`/${segments}/`);
}
