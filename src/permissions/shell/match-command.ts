/** Whether a rule for shell commands speaks of a command. */
import { baseName, fold } from "../fold.ts";
import type { ShellAnalysis, ShellCommand } from "./analyse.ts";

export interface CommandPattern {
  readonly words?: readonly string[];
  readonly stem: boolean;
}

/**
 * For an allow: the rule names the command's identifier, all its words, or (with a stem) its beginning. The program
 * must be written as in the rule, so that `./git` is not `git`, and nothing may be added when it runs.
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
 * For a refusal: names are compared without folder and case, a program's name alone means all its uses, and options
 * may stand between the words. "maybe" when a word that matters is only known when the command runs.
 */
export function patternRefuses(pattern: CommandPattern, command: ShellCommand): "yes" | "maybe" | "no" {
  const { words } = pattern;
  if (words === undefined) return "yes";
  const [program = "", ...rest] = words;
  if (fold(baseName(command.words[0] ?? "")) !== fold(baseName(program))) return "no";
  if (occursInOrder(rest, command.words.slice(1))) return "yes";
  return command.certain ? "no" : "maybe";
}

/** True when the words of the rule stand where an unknown program could run them. */
export function patternStrays(pattern: CommandPattern, analysis: ShellAnalysis): boolean {
  return pattern.words?.every((word) => analysis.strays.has(fold(baseName(word)))) ?? false;
}

function startsWith(words: readonly string[], start: readonly string[]): boolean {
  return start.every((word, index) => words[index] === word);
}

/** Only options, and words that may be the value of an option, are skipped. */
function occursInOrder(wanted: readonly string[], words: readonly string[]): boolean {
  if (wanted.length === 0) return true;
  const [first = "", ...rest] = wanted;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (fold(word) === fold(first) && occursInOrder(rest, words.slice(index + 1))) return true;
    const skippable = word.startsWith("-") || (words[index - 1]?.startsWith("-") ?? false);
    if (!skippable) return false;
  }
  return false;
}
