/** Rules for certain files: which files they match, and their lines in the prompt. */
import { relative, sep } from "node:path";
import { GlobPatternError, globMatcher } from "../lib/glob-pattern.ts";
import { isInside } from "../lib/node/paths.ts";
import { quoted } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import type { InstructionCandidate, InstructionText } from "./instruction-reader.ts";

export interface InstructionReference {
  readonly path: string;
  /** Relative to the folder that the rule belongs to. */
  readonly globs: readonly string[];
  readonly description: string;
}

/** A rule that the model receives when it touches a matching file. */
export interface ScopedRule extends InstructionReference {
  readonly found: InstructionCandidate;
  readonly shownPath: string;
  matches(absolutePath: string): boolean;
}

const MAX_GLOBS = 32;
const MAX_GLOB_CHARACTERS = 200;
const MAX_DESCRIPTION_CHARACTERS = 120;
const EVERYTHING = new Set(["**", "**/*", "**/**", "*"]);

/** Returns `undefined` for a rule that applies to all files. Its globs are relative to `base`. */
export function scopedRule(
  text: InstructionText,
  base: string,
  onNotice: (notice: string) => void,
): ScopedRule | undefined {
  const globs = globsIn(text.data);
  if (globs.length === 0 || globs.some((glob) => EVERYTHING.has(glob))) return undefined;
  const matchers = globs.flatMap((glob) => {
    try {
      return [globMatcher(glob)];
    } catch (error) {
      if (!(error instanceof GlobPatternError)) throw error;
      onNotice(`${text.shownPath}: ${error.message}`);
      return [];
    }
  });
  return {
    path: text.path,
    shownPath: text.shownPath,
    globs,
    description: descriptionOf(text),
    found: text.found,
    matches(path) {
      if (!isInside(path, [base])) return false;
      const name = relative(base, path).replaceAll(sep, "/");
      return matchers.some((matcher) => matcher(name));
    },
  };
}

/** Returns the rule's line for the prompt. */
export function referenceLine({ shownPath, globs, description }: ScopedRule): string {
  return `- ${quoted(shownPath)} (for ${clip(globs.map(oneLine).join(", "), MAX_GLOB_CHARACTERS)}): ${description}`;
}

/** `applyTo` is usually a text with commas, `paths` a list. Both forms are accepted for both. */
function globsIn({ applyTo, paths }: Readonly<Record<string, unknown>>): string[] {
  return [applyTo, paths]
    .flat()
    .filter((value) => typeof value === "string")
    .flatMap(splitAtCommas)
    .map((glob) => glob.trim())
    .filter((glob) => glob !== "")
    .slice(0, MAX_GLOBS);
}

/** Splits at commas, except within braces. */
function splitAtCommas(globs: string): string[] {
  return globs.split(/,(?![^{]*\})/);
}

function descriptionOf({ data, body }: InstructionText): string {
  const given = typeof data.description === "string" ? data.description : (body.split("\n", 1)[0] ?? "");
  return clip(oneLine(given.replace(/^#+\s*/, "")), MAX_DESCRIPTION_CHARACTERS);
}

function oneLine(text: string): string {
  return quoted(text).replace(/\s+/g, " ").trim();
}
