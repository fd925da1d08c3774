import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { processorTime } from "../../../test/support/work.ts";
import { globMatcher, splitBase } from "./glob-pattern.ts";

const paths = [
  "a.ts",
  "b.js",
  "src/a.ts",
  "src/b.tsx",
  "src/deep/er/c.ts",
  ".env",
  "src/.hidden/d.ts",
  "we{ird}.ts",
  "[x].ts",
];

function matching(pattern: string): string[] {
  const matches = globMatcher(pattern);
  return paths.filter((path) => matches(path));
}

describe("glob patterns", () => {
  test.each([
    ["*.ts", ["a.ts", "we{ird}.ts", "[x].ts"]],
    ["**/*.tsx", ["src/b.tsx"]],
    ["src/**/*.ts", ["src/a.ts", "src/deep/er/c.ts", "src/.hidden/d.ts"]],
    ["src/**", ["src/a.ts", "src/b.tsx", "src/deep/er/c.ts", "src/.hidden/d.ts"]],
    ["src/deep/", ["src/deep/er/c.ts"]],
    ["**/er/**", ["src/deep/er/c.ts"]],
    ["{a,b}.{ts,js}", ["a.ts", "b.js"]],
    ["{src/{a,b},c}.{ts,tsx}", ["src/a.ts", "src/b.tsx"]],
    ["?.ts", ["a.ts"]],
    ["[!b].??", ["a.ts"]],
    ["[a-b].[jt]s", ["a.ts", "b.js"]],
    ["\\[x\\].ts", ["[x].ts"]],
    ["we\\{ird\\}.ts", ["we{ird}.ts"]],
    ["[x", []],
    [".*", [".env"]],
    ["./a.ts", ["a.ts"]],
    ["A.ts", []],
    ["--pre=touch x", []],
  ])("the glob pattern %s finds what it names and nothing else", (pattern, expected) => {
    expect(matching(pattern)).toEqual(expected);
  });

  test("glob patterns agree with the simplest possible matcher", async () => {
    const segment = fc.oneof(fc.constant("**"), fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), minLength: 1 }));
    const name = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 });
    const [pattern, path] = [
      fc.array(segment, { minLength: 1, maxLength: 5 }),
      fc.array(name, { minLength: 1, maxLength: 5 }),
    ];
    await fc.assert(
      fc.property(pattern, path, (segments, names) => {
        expect(globMatcher(segments.join("/"))(names.join("/"))).toBe(plainMatch(segments, names));
      }),
      { numRuns: 1000 },
    );
  });

  test("glob patterns are matched quickly with very many stars", () => {
    const spent = processorTime();
    expect(globMatcher(`${"*a".repeat(400)}b`)("a".repeat(4000))).toBe(false);
    expect(globMatcher(`${"**/a/".repeat(190)}b`)("a/".repeat(2000))).toBe(false);
    expect(spent()).toBeLessThan(1000);
  });

  test("glob patterns are refused when they have too many alternatives or are too long", () => {
    expect(() => globMatcher("{a,b}".repeat(20))).toThrow("more than 256 alternatives");
    expect(() => globMatcher("a".repeat(1001))).toThrow("at most 1000 characters");
  });
});

test.each([
  ["**/*.ts", { base: "", pattern: "**/*.ts" }],
  ["src/lib/*.ts", { base: "src/lib", pattern: "*.ts" }],
  ["/abs/x/**", { base: "/abs/x", pattern: "**" }],
  ["/*.ts", { base: "/", pattern: "*.ts" }],
  ["../up/{a,b}", { base: "../up", pattern: "{a,b}" }],
  ["src/index.ts", { base: "src", pattern: "index.ts" }],
  ["src/", { base: "src", pattern: "**" }],
])("the search for the glob pattern %s starts in its fixed folders", (pattern, expected) => {
  expect(splitBase(pattern)).toEqual(expected);
});

function plainMatch([segment, ...segments]: string[], names: string[]): boolean {
  if (segment === undefined) return names.length === 0;
  const [name, ...others] = names;
  if (segment === "**" && plainMatch(segments, names)) return true;
  if (name === undefined) return false;
  if (segment === "**") return plainMatch([segment, ...segments], others);
  const expression = segment.replace(/\*+/g, ".*").replaceAll("?", ".");
  return new RegExp(`^${expression}$`).test(name) && plainMatch(segments, others);
}
