import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseFrontmatter } from "./frontmatter.ts";

describe("frontmatter", () => {
  it("frontmatter gives the data of the block and the text behind it", async () => {
    const text = '---\nname: review\napplyTo: "**/*.ts"\ntools: [view, grep]\nuser-invocable: false\n---\n# Body\n';
    expect(await parseFrontmatter(text)).toEqual({
      data: { name: "review", applyTo: "**/*.ts", tools: ["view", "grep"], "user-invocable": false },
      body: "# Body\n",
    });
  });

  it.each([
    ["no block", "# Title\n---\na: 1\n---\n", { data: {}, body: "# Title\n---\na: 1\n---\n" }],
    ["an empty block", "---\n---\nBody", { data: {}, body: "Body" }],
    ["a block and nothing else", "---\na: 1\n---", { data: { a: 1 }, body: "" }],
    [
      "Windows line ends and a byte order mark",
      "\ufeff---\r\na: 1\r\n---\r\nBody\r\n",
      { data: { a: 1 }, body: "Body\r\n" },
    ],
    ["a longer rule, which is Markdown", "----\na: 1\n----\n", { data: {}, body: "----\na: 1\n----\n" }],
  ])("frontmatter reads %s", async (_name, text, expected) => {
    expect(await parseFrontmatter(text)).toEqual(expected);
  });

  it("frontmatter treats values that are not YAML, but clearly text, as text", async () => {
    const text =
      "---\napplyTo: **/*.ts\ndescription: Use when: someone asks # now\nnote: folded\n  on\nenabled: true\ncount: 3\n---\nBody";
    expect(await parseFrontmatter(text)).toEqual({
      data: {
        applyTo: "**/*.ts",
        description: "Use when: someone asks # now",
        note: "folded on",
        enabled: true,
        count: 3,
      },
      body: "Body",
    });
  });

  it("frontmatter names the line of a syntax error, and keeps the body", async () => {
    const { data, body, problem } = await parseFrontmatter("---\nname: x\ntools: [a, b\n---\nBody");
    expect({ data, body, line: problem?.line }).toEqual({ data: {}, body: "Body", line: 4 });
    expect(problem?.message).toMatch(/flow/i);
  });

  it("frontmatter says that a block was never closed", async () => {
    expect(await parseFrontmatter("---\nname: x\n")).toEqual({
      data: {},
      body: "---\nname: x\n",
      problem: { line: 1, message: "The frontmatter starts with --- but has no closing ---." },
    });
  });

  it.each([
    ["a list", "- a\n- b", /key: value/],
    ["prototype keys", "__proto__:\n  admin: true", /__proto__/],
    ["prototype keys deep inside", "a: [{constructor: 1}]", /constructor/],
    ["aliases that multiply", `a: &a [1,1,1,1,1,1,1,1,1]\n${laughs(8)}`, /alias/i],
    ["a value that contains itself", "a: &a [*a]", /nested|alias|values/i],
    ["brackets without end", `a: ${"[".repeat(8_000)}`, /nested/],
    ["braces without end", `a: ${"{a: ".repeat(4_000)}`, /nested/],
    ["lists in lists without end", "- ".repeat(8_000), /nested/],
    ["maps in maps without end", "a: ".repeat(5_000), /nested/],
    [
      "lists that nest from line to line",
      Array.from({ length: 170 }, (_, at) => `${" ".repeat(at)}-`).join("\n"),
      /nested/,
    ],
    ["more levels than a person needs", `a: ${"[".repeat(20)}1${"]".repeat(20)}`, /nested more than 16/],
    ["very many values", `a: [${"1,".repeat(5_001)}1]`, /values/],
    ["16 KiB and more", `a: ${"x".repeat(16 * 1024)}`, /16 KiB/],
  ])("frontmatter refuses %s", async (_name, block, message) => {
    const { data, body, problem } = await parseFrontmatter(`---\n${block}\n---\nBody`);
    expect({ data, body }).toEqual({ data: {}, body: "Body" });
    expect(problem?.message).toMatch(message);
  });

  it("frontmatter never throws, and loses no text behind the block", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 60 }), fc.string(), async (block, rest) => {
        const { body } = await parseFrontmatter(`---\n${block}\n---\n${rest}`);
        expect(body.endsWith(rest)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });
});

/** Each line holds the one before nine times over. */
function laughs(levels: number): string {
  return Array.from({ length: levels }, (_, level) => {
    const former = String.fromCharCode(97 + level);
    const name = String.fromCharCode(98 + level);
    return `${name}: &${name} [${Array(9).fill(`*${former}`).join(",")}]`;
  }).join("\n");
}
