import { parseArgs } from "node:util";
import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { options } from "./options.ts";

export interface Arguments {
  /** Arguments that are no flags: a subcommand and its arguments. */
  readonly words: readonly string[];
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
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const option = options.find(({ name }) => name === token.name);
    if (!option) throw unknownFlag(token.rawName);
    if (option.value && token.value === undefined)
      throw usage(`${token.rawName} needs a value: ${token.rawName} <${option.value}>.`);
    if (!option.value && token.value !== undefined) throw usage(`${token.rawName} takes no value.`);
    if (option.value && token.inlineValue === false && isFlag(token.value)) {
      throw usage(
        `${token.rawName} needs a value, and ${token.value} is a flag. To mean it: --${token.name}="${token.value}".`,
      );
    }
  }
  const once = tokens.flatMap((token) => (token.kind === "option" ? [token.name] : []));
  for (const [index, name] of once.entries()) {
    const repeated = once.indexOf(name) !== index && !options.find((option) => option.name === name)?.multiple;
    if (repeated) throw usage(`--${name} is given twice.`);
  }
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    words: positionals,
    text,
    list(name) {
      const given = [values[name] ?? []].flat().filter((value) => typeof value === "string");
      const isVerbatim = options.find((option) => option.name === name)?.verbatim ?? false;
      if (isVerbatim) return given;
      return given.flatMap((value) => {
        const parts = splitRules(value);
        if (parts.length === 0) throw usage(`--${name} needs a value, and "${value}" is none.`);
        return parts;
      });
    },
    has: (name) => values[name] === true,
    amount(name, kind) {
      const given = text(name);
      if (given === undefined) return undefined;
      const value = Number(given);
      const isEnough = kind === "count" ? value >= 0 && given.trim() !== "" : value > 0;
      const fits = Number.isFinite(value) && isEnough && (kind === "any" || Number.isInteger(value));
      if (!fits) throw usage(`--${name} needs ${AMOUNTS[kind]}, not "${given}".`);
      return value;
    },
    choice(name, choices) {
      const given = text(name);
      const found = choices.find((choice) => choice === given);
      if (given !== undefined && found === undefined)
        throw usage(`--${name} must be one of ${choices.join(", ")}, not "${given}".`);
      return found;
    },
  };
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

export const usage = (message: string, hint = "See `troupe --help`."): TroupeError =>
  new TroupeError("usage", message, { hint });

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
