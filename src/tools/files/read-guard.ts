/** The port through which tools that read many files omit those that rules deny. */
import { plural } from "../../lib/text.ts";

export interface ReadGuard {
  /** Returns true when a rule denies this tool to read the path. */
  denies(path: string, toolName: string): boolean;
  /** Returns the paths to omit from a search in this folder, or undefined when nothing is denied. */
  forSearch(search: { readonly folder: string; readonly toolName: string }): Promise<LeftOut | undefined>;
}

export interface LeftOut {
  /** Patterns for ripgrep of files it must not open. */
  readonly excluded: readonly string[];
  /** Number of denied paths found in the folder. */
  readonly found: number;
  /** False when there may be more. */
  readonly complete: boolean;
  /** Returns true for an absolute path that must not be shown, and counts it. */
  hides(path: string): boolean;
  /** Number of paths that `hides` withheld and that are not in `found`. */
  readonly kept: number;
}

/** Returns a final line for the result, or undefined when nothing was omitted. */
export function leftOutLine(all: readonly (LeftOut | undefined)[]): string | undefined {
  const known = all.filter((one) => one !== undefined);
  const count = known.reduce((sum, { found, kept }) => sum + found + kept, 0);
  const isOpen = known.some(({ complete }) => !complete);
  if (count === 0 && !isOpen) return undefined;
  if (count === 0) return "[Paths that rules deny to read were left out]";
  return `[${isOpen ? "At least " : ""}${plural(count, "path")} left out: rules deny reading ${count === 1 ? "it" : "them"}]`;
}
