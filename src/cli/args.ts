import { parseArgs } from "node:util";
import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { type Option, options } from "./options.ts";

export interface Arguments {
  /** Arguments that are not flags: a subcommand and its arguments. */
  readonly words: readonly string[];
  /** The names of the given flags, each once. */
  readonly flags: readonly string[];
  /** Returns the given flags with their values, as words of a command line, except those of these names. */
  without(names: readonly string[]): readonly string[];
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  has(name: string): boolean;
  /**
   * Returns a number above zero; with `count` also zero. Throws a usage error that names the flag for anything else.
   */
  amount(name: string, kind: "whole" | "any" | "count"): number | undefined;
  choice<const C extends string>(name: string, choices: readonly C[]): C | undefined;
}

/** Parses the command line. Throws for unknown flags, with the nearest known one as a hint. */
export function parse(argv: readonly string[]): Arguments {
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      options.map(({ name, short, value, multiple = false }) => [
        name,
        { type: value ? "string" : "boolean", multiple, ...(short && { short }) } as const,
      ]),
    ),
  });
  const flags = tokens.filter((token) => token.kind === "option");
  for (const token of flags) checkToken(token);
  const names = flags.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index && !optionOf(name)?.multiple);
  if (twice !== undefined) throw usage(`--${twice} is given twice.`);
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    words: positionals,
    flags: [...new Set(names)],
    without: (left) =>
      flags
        .filter(({ name }) => !left.includes(name))
        .map(({ name, value }) => (value === undefined ? `--${name}` : `--${name}=${value}`)),
    text,
    list(name) {
      const given = [values[name] ?? []].flat().filter((value) => typeof value === "string");
      return optionOf(name)?.verbatim ? given : given.flatMap((value) => rulesOf(name, value));
    },
    has: (name) => values[name] === true,
    amount: (name, kind) => amountOf(name, text(name), kind),
    choice(name, choices) {
      const given = text(name);
      const found = choices.find((choice) => choice === given);
      if (given !== undefined && found === undefined)
        throw usage(`--${name} must be one of ${choices.join(", ")}, not "${given}".`);
      return found;
    },
  };
}

const optionOf = (wanted: string): Option | undefined => options.find(({ name }) => name === wanted);

interface FlagToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkToken({ name, rawName, value, inlineValue }: FlagToken): void {
  const option = optionOf(name);
  if (!option) throw unknownFlag(rawName);
  if (option.value && value === undefined) throw usage(`${rawName} needs a value: ${rawName} <${option.value}>.`);
  if (!option.value && value !== undefined) throw usage(`${rawName} takes no value.`);
  if (option.value && inlineValue === false && isFlag(value)) {
    throw usage(`${rawName} needs a value, and ${value} is a flag. To pass it as the value: --${name}="${value}".`);
  }
}

function rulesOf(name: string, value: string): string[] {
  const parts = splitRules(value);
  if (parts.length === 0) throw usage(`--${name} needs a value, and "${value}" is none.`);
  return parts;
}

function amountOf(name: string, given: string | undefined, kind: keyof typeof AMOUNTS): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  const isEnough = kind === "count" ? value >= 0 && given.trim() !== "" : value > 0;
  const fits = Number.isFinite(value) && isEnough && (kind === "any" || Number.isInteger(value));
  if (!fits) throw usage(`--${name} needs ${AMOUNTS[kind]}, not "${given}".`);
  return value;
}

const AMOUNTS = {
  whole: "a whole number above zero",
  any: "a number above zero",
  count: "a whole number, 0 or more",
} as const;

const isFlag = (value: string | undefined): boolean =>
  options.some(({ name, short }) => value === `--${name}` || value === `-${short}`);

/**
 * True if the user wants data. `--json` and `--output-format json` mean the same for every command that prints a
 * result.
 */
export const wantsJson = (given: Arguments): boolean =>
  given.has("json") || given.choice("output-format", ["text", "json"]) === "json";

export const GENERAL_HINT = "See `troupe --help`.";

export const usage = (message: string, hint = GENERAL_HINT): TroupeError => new TroupeError("usage", message, { hint });

/** The error for a subcommand that does not exist, with the nearest one that does. */
export function unknownSubcommand(command: string, word: string, known: readonly string[]): TroupeError {
  const close = nearest(word, known);
  const offer = close ? `Did you mean ${close}?` : `Use one of ${known.join(", ")}.`;
  return usage(`Unknown: troupe ${command} ${word}. ${offer}`, `See \`troupe ${command} --help\`.`);
}

function unknownFlag(flag: string): TroupeError {
  // Flags that loosen permissions are never suggested for a typing error.
  const names = options.filter(({ group }) => group !== "Permissions").map(({ name }) => name);
  const close = nearest(flag.replace(/^-+/, ""), names);
  return usage(`Unknown flag ${flag}.${close ? ` Did you mean --${close}?` : ""}`);
}

/**
 * `a, b(c, d)` is two rules: commas inside parentheses belong to the rule. An unclosed parenthesis extends to the end.
 */
function splitRules(list: string): string[] {
  const rules = [""];
  let depth = 0;
  for (const character of list) {
    if (character === "(") depth++;
    if (character === ")") depth = Math.max(0, depth - 1);
    if (character === "," && depth === 0) rules.push("");
    else rules.push(`${rules.pop()}${character}`);
  }
  return rules.map((rule) => rule.trim()).filter(Boolean);
}
