import fc from "fast-check";
import { expect, it } from "vitest";
import { agentFrontmatter } from "../../src/catalog/agents/agents-frontmatter.ts";
import { parseFrontmatter } from "../../src/lib/frontmatter.ts";

it("the fast reader of agent files returns what the YAML parser returns", async () => {
  const key = fc.constantFrom("name", "description", "tools", "skills", "constructor", "user-invocable");
  const item = fc.oneof(
    fc.constantFrom(
      "view",
      "docs/*",
      '"*"',
      '"docs/*"',
      "true",
      "Null",
      "1",
      "a b",
      '"a: b"',
      "x.y",
      "*",
      "- a",
      '"a, b"',
      "a#",
      "_a",
      "''",
    ),
    fc.stringMatching(/^[\w"'*:,#./ -]{0,6}$/),
  );
  const items = fc.array(item, { maxLength: 4 });
  const value = fc.oneof(
    fc.tuple(items, fc.constantFrom(",", ", ", " , ")).map(([words, comma]) => `[${words.join(comma)}]`),
    fc.constantFrom("plain words", "true", '"quoted"', "a: b", "", "[", "[]", "[a", "[a,]", "[ a ]"),
  );
  const line = fc.tuple(key, value).map(([name, written]) => `${name}: ${written}`);
  const text = fc.array(line, { maxLength: 4 }).map((lines) => `---\n${lines.join("\n")}\n---\nBody [a, b]\n`);
  await fc.assert(
    fc.asyncProperty(text, async (markdown) => {
      expect(await agentFrontmatter(markdown)).toEqual(await parseFrontmatter(markdown));
    }),
    { numRuns: 300 },
  );
});
