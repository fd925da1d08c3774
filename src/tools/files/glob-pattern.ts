import { GlobPatternError, globMatcher as matcherOf } from "../../lib/glob-pattern.ts";
import { ToolError } from "../tool-error.ts";

export { splitBase } from "../../lib/glob-pattern.ts";

/** Returns a test for paths, see `lib/glob-pattern.ts`. Throws a `ToolError` for a pattern that is too complex. */
export function globMatcher(pattern: string): (path: string) => boolean {
  try {
    return matcherOf(pattern);
  } catch (error) {
    throw error instanceof GlobPatternError ? new ToolError(error.message) : error;
  }
}
