/** Matches rules for shell commands against commands. */
import { baseName, caseFold } from "../case-fold.ts";
import type { ShellAnalysis, ShellCommand } from "./analyse.ts";

export interface CommandPattern {
  readonly words?: readonly string[];
  readonly stem: boolean;
}

/**
 * For an allow rule: it names the command's identifier, all its words, or (with a stem) its start. The program must be
 * written as in the rule, so that `./git` is not `git`, and no words may be added at run time.
 */
export function patternAllows(pattern: CommandPattern, command: ShellCommand): boolean {
  const { words } = pattern;
  if (words === undefined) return true;
  if (!command.certain || command.escapes) return false;
  const isWhole = (others: readonly string[]): boolean => others.length === words.length && startsWith(others, words);
  if (pattern.stem) return startsWith(command.words, words);
  return isWhole(command.words) || isWhole(command.identifier.split(" "));
}

/**
 * For a denial: names are compared without folder and case, and options may be between the words. A program's name
 * alone covers all its uses. Returns "maybe" when a relevant word is only known at run time.
 */
export function patternRefuses(pattern: CommandPattern, command: ShellCommand): "yes" | "maybe" | "no" {
  const { words } = pattern;
  if (words === undefined) return "yes";
  const [program = "", ...rest] = words;
  if (caseFold(baseName(command.words[0] ?? "")) !== caseFold(baseName(program))) return "no";
  if (occursInOrder(rest, command.words.slice(1))) return "yes";
  return command.certain ? "no" : "maybe";
}

/** Returns true when the words of the rule are in positions from which an unknown program could run them. */
export function patternStrays(pattern: CommandPattern, analysis: ShellAnalysis): boolean {
  return pattern.words?.every((word) => analysis.strays.has(caseFold(baseName(word)))) ?? false;
}

function startsWith(words: readonly string[], start: readonly string[]): boolean {
  return start.every((word, index) => words[index] === word);
}

/** Skips only options, and words that may be the value of an option. */
function occursInOrder(wanted: readonly string[], words: readonly string[]): boolean {
  if (wanted.length === 0) return true;
  const [first = "", ...rest] = wanted;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (caseFold(word) === caseFold(first) && occursInOrder(rest, words.slice(index + 1))) return true;
    const skippable = word.startsWith("-") || (words[index - 1]?.startsWith("-") ?? false);
    if (!skippable) return false;
  }
  return false;
}
