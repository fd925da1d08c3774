/** The port by which tools that look at many files at once leave out those that rules deny. */
import { plural } from "../../lib/text.ts";

export interface ReadGuard {
  /** True when a rule denies this tool to read the path. */
  denies(path: string, toolName: string): boolean;
  /** Paths to leave out of a search in this folder; undefined when nothing is denied. */
  forSearch(search: { readonly folder: string; readonly toolName: string }): Promise<LeftOut | undefined>;
}

export interface LeftOut {
  /** Patterns for ripgrep: what it must not even open. */
  readonly excluded: readonly string[];
  /** Denied paths in the folder, as far as they were found. */
  readonly found: number;
  /** False when there may be more. */
  readonly complete: boolean;
  /** True for an absolute path that must not be shown. Counts it. */
  hides(path: string): boolean;
  /** Paths that were kept back by `hides` and are not among `found`. */
  readonly kept: number;
}

/** A last line for the result; undefined when nothing was left out. */
export function leftOutLine(all: readonly (LeftOut | undefined)[]): string | undefined {
  const known = all.filter((one) => one !== undefined);
  const count = known.reduce((sum, { found, kept }) => sum + found + kept, 0);
  const isOpen = known.some(({ complete }) => !complete);
  if (count === 0 && !isOpen) return undefined;
  if (count === 0) return "[Paths that rules deny to read were left out]";
  return `[${isOpen ? "At least " : ""}${plural(count, "path")} left out: rules deny reading ${count === 1 ? "it" : "them"}]`;
}
