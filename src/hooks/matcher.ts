/**
 * Decides whether a hook applies. Patterns come from projects, so they run in the automaton of `pattern.ts`, whose time
 * is bounded by pattern length times name length.
 */
import { claudeName } from "./dialect.ts";
import { compilePattern, MAX_PATTERN_CHARACTERS } from "./pattern.ts";
import type { Dialect, HookPoint } from "./points.ts";
import { subjectFields } from "./points.ts";

export interface Matcher {
  readonly text: string;
  matches(subject: string): boolean;
}

/** Longer names match every hook, so that no name can be too long for a guard. */
const MAX_SUBJECT_CHARACTERS = 256;

/**
 * Returns undefined when the hook runs for everything, as at points without a subject. Throws for an invalid pattern.
 */
export function parseMatcher(
  text: string,
  { point, dialect }: { point: HookPoint; dialect: Dialect },
): Matcher | undefined {
  if (text === "" || text === "*" || subjectFields[point] === undefined) return undefined;
  if (text.length > MAX_PATTERN_CHARACTERS)
    throw new Error(`the matcher is longer than ${MAX_PATTERN_CHARACTERS} characters`);
  const test = dialect === "pascal" && isLiteralList(text) ? oneOf(text.split("|")) : compilePattern(text);
  const spelled = dialect === "pascal" && subjectFields[point] === "toolName" ? claudeName : asItIs;
  return {
    text,
    matches: (subject) => subject.length > MAX_SUBJECT_CHARACTERS || test(spelled(subject)),
  };
}

const isLiteralList = (text: string): boolean => /^[\w-]+(\|[\w-]+)*$/.test(text);
const asItIs = (name: string): string => name;

function oneOf(names: readonly string[]): (subject: string) => boolean {
  const set = new Set(names);
  return (subject) => set.has(subject);
}
