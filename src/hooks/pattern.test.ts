import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { processorTime } from "../../test/support/work.ts";
import { compilePattern } from "./pattern.ts";

describe("a pattern", () => {
  it.each([
    ["bash", "bash", true],
    ["bash", "bash2", false],
    ["bash|edit", "edit", true],
    ["^bash$", "bash", true],
    ["a^b", "ab", false],
    ["mcp__.*", "mcp__server__tool", true],
    ["(read|write)_[a-z_]+", "read_file_now", true],
    ["[^a-c]x", "dx", true],
    ["[^a-c]x", "bx", false],
    ["a{2,3}", "aaaa", false],
    ["a{2,}", "aaaa", true],
    ["a{2}", "aa", true],
    ["\\w+\\.\\d", "tool.7", true],
    ["(?:ab?)*c", "abaac", true],
    ["", "", true],
    ["(a*)*", "aaa", true],
    [".*?x", "yyx", true],
  ])("the hook pattern %s on %s matches: %s", (pattern, subject, expected) => {
    expect(compilePattern(pattern)(subject)).toBe(expected);
    expect(new RegExp(`^(?:${pattern})$`).test(subject)).toBe(expected);
  });

  it.each([
    "(",
    ")",
    "[a",
    "*a",
    "a**",
    "a{3,2}",
    "(?=a)",
    "(?<n>a)",
    "\\1",
    "\\b",
    "[z-a]",
    "(a{99}){99}",
    "((((".repeat(20),
  ])("a hook pattern refuses %s", (pattern) => {
    expect(() => compilePattern(pattern)).toThrow(/^the matcher/);
  });

  it("a hook pattern matches the same texts as the regular expression", () => {
    const atom = fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "\\w", "^", "$");
    const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
      piece: fc.oneof(
        { maxDepth: 4 },
        atom,
        tie("pattern").map((inner) => `(?:${inner})`),
        fc
          .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{2}", "{0,2}", "{1,}"))
          .map(([inner, sign]) => `(${inner})${sign}`),
        fc.tuple(tie("piece"), tie("piece")).map(([one, other]) => `${one}|${other}`),
      ),
      pattern: fc.array(tie("piece"), { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join("")),
    }));
    const subject = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 6 }).map((letters) => letters.join(""));
    void fc.assert(
      fc.property(pattern, subject, (text, tested) => {
        expect(compilePattern(text)(tested)).toBe(new RegExp(`^(?:${text})$`).test(tested));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    "(a*)*b",
    "(a|a)*b",
    "(a+)+$b",
    `${"a?".repeat(60)}${"a".repeat(60)}b`,
    "(a|aa)+(a|aa)+(a|aa)+c",
    "((((a*)*)*)*)*b",
  ])("a hook pattern is tested quickly where a backtracking engine takes exponential time: %s", (pattern) => {
    const test = compilePattern(pattern);
    const spent = processorTime();
    expect(test("a".repeat(256))).toBe(false);
    expect(spent()).toBeLessThan(500);
  });
});
