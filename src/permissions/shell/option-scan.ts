/** The possible effects of one use of a program. */
export interface ProgramUse {
  /** True when the program is known to run none of its arguments. */
  readonly known: boolean;
  readonly readOnly: boolean;
  /** True when its arguments make it write elsewhere or run something else. No rule with an argument covers that. */
  readonly escapes: boolean;
}

/** Returns true when one of the options is given, including abbreviated long options and bundled short ones. */
export function hasOption(
  args: readonly string[],
  options: { readonly long?: readonly string[]; readonly short?: string },
): boolean {
  const { long = [], short = "" } = options;
  return args.some((word) => {
    if (!word.startsWith("-") || word === "-" || word === "--") return false;
    if (!word.startsWith("--")) return [...short].some((letter) => word.slice(1).includes(letter));
    const name = word.split("=", 1)[0] ?? "";
    return long.some((option) => option.startsWith(name) || name === option);
  });
}
