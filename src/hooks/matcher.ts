/**
 * Whether a hook is meant. Patterns come from projects, so they are run by the automaton of `pattern.ts`, whose time
 * grows with the length of pattern times name and nothing else.
 */
import { claudeName } from "./dialect.ts";
import { compilePattern, MAX_PATTERN_CHARACTERS } from "./pattern.ts";
import type { Dialect, HookPoint } from "./points.ts";
import { subjectFields } from "./points.ts";

export interface Matcher {
  readonly text: string;
  matches(subject: string): boolean;
}

/** Longer names run every hook: no name is long enough to slip past a guard. */
const MAX_SUBJECT_CHARACTERS = 256;

/** `undefined` = runs for everything, as all do at points without names to tell apart. Throws what is wrong with the pattern. */
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
