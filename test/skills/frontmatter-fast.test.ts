import * as fc from "fast-check";
import { expect, test } from "vitest";
import { plainFrontmatter } from "../../src/context/skills/frontmatter-fast.ts";
import { parseFrontmatter } from "../../src/lib/frontmatter.ts";

const value = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom(
    "true",
    "False",
    "null",
    "~",
    "a: b",
    "a:",
    "a #b",
    "a#b",
    '"quoted"',
    '"a\\n"',
    "'x'",
    "[a]",
    "1.0",
    "on",
    "a ",
    "- x",
    "y",
  ),
);
const key = fc.constantFrom("name", "description", "allowed-tools", "a", "constructor", "x_1", "1a");
const words = fc.stringMatching(/^[A-Za-z][A-Za-z0-9 :#.,"'-]{0,15}$/);
const line = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(key, value).map(([name, text]) => `${name}: ${text}`) },
  { weight: 4, arbitrary: fc.tuple(key, words).map(([name, text]) => `${name}: ${text}`) },
  fc.constantFrom("", "  more", "---", "--- ", "# comment", "name:"),
);
const file = fc
  .tuple(fc.array(line, { maxLength: 5 }), fc.string({ maxLength: 20 }))
  .map(([lines, body]) => `---\n${lines.join("\n")}\n---\n${body}`);

test("the fast reader of plain lines agrees with YAML, or leaves the text to YAML", async () => {
  let plain = 0;
  await fc.assert(
    fc.asyncProperty(file, async (text) => {
      const fast = plainFrontmatter(text);
      if (fast === undefined) return;
      plain++;
      expect(fast).toEqual(await parseFrontmatter(text));
    }),
    { numRuns: 1500 },
  );
  expect(plain).toBeGreaterThan(50);
});
