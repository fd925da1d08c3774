import type { Arguments } from "../../src/cli/args.ts";

/** The command line after parsing: words, and flags by name. */
export function given(words: string, flags: Record<string, string | true> = {}): Arguments {
  const text = (name: string): string | undefined => (typeof flags[name] === "string" ? flags[name] : undefined);
  return {
    words: ["memory", ...(words.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""))],
    flags: Object.keys(flags),
    without: () => [],
    text,
    list: () => [],
    has: (name) => flags[name] === true,
    amount: (name) => (text(name) === undefined ? undefined : Number(text(name))),
    choice: (name, choices) => choices.find((choice) => choice === text(name)),
  };
}
