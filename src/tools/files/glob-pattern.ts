import { GlobPatternError, globMatcher as matcherOf } from "../../lib/glob-pattern.ts";
import { ToolError } from "../tool-error.ts";

export { splitBase } from "../../lib/glob-pattern.ts";

/** A test for paths, see `lib/glob-pattern.ts`; a pattern that asks for too much is the model's mistake. */
export function globMatcher(pattern: string): (path: string) => boolean {
  try {
    return matcherOf(pattern);
  } catch (error) {
    throw error instanceof GlobPatternError ? new ToolError(error.message) : error;
  }
}
