import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MarkdownPart } from "../../src/view/blocks.ts";
import { feed, flush, newSplitter, partsOf, tailOf } from "../../src/view/markdown-parts.ts";

const line = fc.constantFrom(
  ...["", " ", "word", "# Head", "#no head", "- item", "  more", "2. second", "| a | b |", "|---|---|", "```ts"],
  ...["```", "~~~", "````", "  ```", "> quote", "a\r", "🎭 emoji", "x".repeat(5_000), "🎭".repeat(9_000)],
);
const markdown = fc.array(line, { maxLength: 60 }).map((lines) => lines.join("\n"));

function fed(text: string, cuts: readonly number[]): MarkdownPart[] {
  const splitter = newSplitter();
  const places = [...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
  const parts: MarkdownPart[] = [];
  let from = 0;
  for (const to of places) {
    parts.push(...feed(splitter, text.slice(from, to)));
    from = to;
  }
  return [...parts, ...flush(splitter)];
}

describe("parts of Markdown", () => {
  it("parts of Markdown are the same however the text is cut into pieces", () => {
    fc.assert(
      fc.property(markdown, fc.array(fc.nat(), { maxLength: 20 }), (text, cuts) => {
        expect(fed(text, cuts)).toEqual(partsOf(text));
      }),
    );
  });

  it("parts of Markdown hold every word of the text once, in order, and stay small", () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const isFence = /^ *(`{3,}|~{3,})/;
        const words = (lines: readonly string[]): string =>
          lines
            .filter((one) => !isFence.test(one))
            .join("")
            .replace(/\s/g, "");
        const parts = partsOf(text);
        expect(words(parts.flatMap((part) => part.text.split("\n")))).toBe(words(text.split("\n")));
        for (const part of parts) expect(part.text.length).toBeLessThanOrEqual(16_001);
      }),
    );
  });

  it("parts of Markdown end with paragraphs, headings, items, tables and fences", () => {
    const text =
      "Intro\nwrapped\n# Head\n- one\n- two\n  more\n\n| a |\n|---|\n| 1 |\nafter\n```js\na\n\n# no head\n```\nend";
    expect(partsOf(text).map(({ kind, text: source, gap, language }) => [kind, source, gap, language])).toEqual([
      ["text", "Intro\nwrapped", false, ""],
      ["heading", "# Head", false, ""],
      ["item", "- one", false, ""],
      ["item", "- two\n  more", false, ""],
      ["table", "| a |\n|---|\n| 1 |", true, ""],
      ["text", "after", false, ""],
      ["code", "a\n\n# no head", false, "js"],
      ["text", "end", false, ""],
    ]);
  });

  it("parts of Markdown cut a long fence into pieces that know whether it opens or closes there", () => {
    const code = Array.from({ length: 90 }, (_, index) => `line ${index}`).join("\n");
    const parts = partsOf(`\`\`\`\n${code}\n\`\`\`\n`);
    expect(parts.map(({ text, isFirst, isLast }) => [text.split("\n").length, isFirst, isLast])).toEqual([
      [40, true, false],
      [40, false, false],
      [10, false, true],
    ]);
  });

  it("parts of Markdown show what is still being written", () => {
    const splitter = newSplitter();
    expect(feed(splitter, "```py\nprint(1)\npri")).toEqual([]);
    expect(tailOf(splitter)).toMatchObject({ kind: "code", language: "py", text: "print(1)\npri", isLast: false });
  });
});
