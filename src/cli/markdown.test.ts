import fc from "fast-check";
import { expect, it } from "vitest";
import { liveAnswers } from "./answers.ts";
import { Markdown, renderMarkdown } from "./markdown.ts";

/** Styles as tags, so that a test can be read. */
const readable = (text: string): string =>
  text
    .replaceAll("\u001b[1;4m", "<h1>")
    .replaceAll("\u001b[22;24m", "</h1>")
    .replaceAll("\u001b[1m", "<b>")
    .replaceAll("\u001b[2m", "<dim>")
    .replaceAll("\u001b[22m", "</>")
    .replaceAll("\u001b[3m", "<i>")
    .replaceAll("\u001b[23m", "</i>")
    .replaceAll("\u001b[4m", "<u>")
    .replaceAll("\u001b[24m", "</u>")
    .replaceAll("\u001b[9m", "<s>")
    .replaceAll("\u001b[29m", "</s>")
    .replaceAll("\u001b[36m", "<c>")
    .replaceAll("\u001b[39m", "</c>");

const render = (text: string, width = 60): string => readable(renderMarkdown(text, width));

it.each([
  ["# Title", "<h1>Title</h1>\n"],
  ["## Part ##", "<b>Part</>\n"],
  ["plain", "plain\n"],
  ["a **bold** and *leaning* word", "a <b>bold</> and <i>leaning</i> word\n"],
  ["__bold__ and _leaning_, not snake_case_name", "<b>bold</> and <i>leaning</i>, not snake_case_name\n"],
  ["~~gone~~ `code` ``a ` b``", "<s>gone</s> <c>code</c> <c>a</c> <c>`</c> <c>b</c>\n"],
  ["`**not bold**`", "<c>**not</c> <c>bold**</c>\n"],
  ["2 * 3 * 4 and \\*stars\\*", "2 * 3 * 4 and *stars*\n"],
  ["[docs](https://example.com/a_(b))", "<u>docs</u> <dim>(https://example.com/a_(b))</>\n"],
  ["<https://example.com>", "<u>https://example.com</u>\n"],
  ["- one\n  - two\n* three", "• one\n  • two\n• three\n"],
  ["1. one\n2) two", "1. one\n2) two\n"],
  ["- [ ] open\n- [x] done", "• ☐ open\n• ☑ done\n"],
  ["> said\n>> twice", "<dim>│ </><dim>said</>\n<dim>│ │ </><dim>twice</>\n"],
  ["---", `<dim>${"─".repeat(60)}</>\n`],
  ["```ts\nconst a = `**x**`;\n\n  b();\n```\nafter", "    const a = `**x**`;\n\n      b();\nafter\n"],
  ["````\n```\n````", "    ```\n"],
  ["a\n\nb", "a\n\nb\n"],
  ["1 of 2", "1 of 2\n"],
  ["", ""],
])("the Markdown renderer renders %j", (source, expected) => {
  expect(render(source)).toBe(expected);
});

it("the Markdown renderer aligns tables, wraps cells in a narrow terminal, and keeps wider tables", () => {
  const table = "| name | what `x` is |\n| --- | ---: |\n| a \\| b | 1 |\n| c | long words in one cell |";
  const lines = (width: number) =>
    renderMarkdown(table, width)
      .replace(/\u001b\[[\d;]*m/g, "")
      .split("\n");
  expect(lines(60)).toEqual([
    "name  │              what x is",
    "──────┼───────────────────────",
    "a | b │                      1",
    "c     │ long words in one cell",
    "",
  ]);
  expect(lines(24)).toEqual([
    "name  │        what x is",
    "──────┼─────────────────",
    "a | b │                1",
    "c     │    long words in",
    "      │         one cell",
    "",
  ]);
  expect(lines(20).every((line) => line.length <= 20)).toBe(true);
  const wide = `|${" a |".repeat(9)}\n|${"---|".repeat(9)}`;
  expect(render(wide, 40)).toBe(`${wide}\n`);
  expect(render("| no | rule |\n| a | b |")).toBe("| no | rule |\n| a | b |\n");
});

it("the Markdown renderer wraps text at words and keeps the indent of a list", () => {
  expect(renderMarkdown("- one two three four five six", 20)).toBe("• one two three four\n  five six\n");
  expect(renderMarkdown(`see ${"x".repeat(30)} end`, 20)).toBe(`see\n${"x".repeat(30)}\nend\n`);
});

const source = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "# a",
        "**b c** d",
        "- `x y` z",
        "| a | b |",
        "|---|---|",
        "```",
        "> q",
        "1. n",
        "- - -",
        "* * x",
        "- [x] t u",
        "",
        "_i_ [l](u)",
        "*a",
      ),
      fc.string({ maxLength: 30 }),
    ),
    { maxLength: 12 },
  )
  .map((lines) => lines.join("\n"));

it("the Markdown renderer gives the same result however the text is split", () => {
  fc.assert(
    fc.property(source, fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 20 }), (text, sizes) => {
      const markdown = new Markdown({ width: () => 40 });
      let [out, at] = ["", 0];
      for (let turn = 0; at < text.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        out += markdown.push(text.slice(at, at + size));
        at += size;
      }
      expect(out + markdown.end()).toBe(renderMarkdown(text, 40));
    }),
    { numRuns: 300 },
  );
});

it("the Markdown renderer removes escape sequences and control characters, whole or in pieces", () => {
  const hostile = "\u001b]0;title\u0007 **\u001b[2Jbold** `\u009b31m` \u202e | \u001b[1m |\n|-|\n```\n\u001b[H\n```\n";
  const only = (text: string): void => {
    expect(text.replace(/\u001b\[[\d;]+m/g, "")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    for (const [, codes = ""] of text.matchAll(/\u001b\[([\d;]+)m/g)) {
      expect(
        codes.split(";").every((code) => ["1", "2", "3", "4", "9", "36", "22", "23", "24", "29", "39"].includes(code)),
      ).toBe(true);
    }
  };
  only(renderMarkdown(hostile, 60));
  for (const colour of [true, false]) {
    let written = "";
    const answers = liveAnswers({
      out: {
        text: (text) => {
          written += text;
        },
      },
      bar: { pause: () => () => undefined },
      colour,
      columns: () => 60,
    });
    for (const deltaContent of hostile)
      answers.show(event("assistant.message_delta", { messageId: "m", deltaContent }));
    answers.answer("");
    only(written);
    if (!colour) expect(written).not.toContain("\u001b");
  }
});

const event = (type: string, data: object) => ({ type, data }) as never;

it("the Markdown renderer shows a message while it arrives and writes it only once", () => {
  let written = "";
  let pauses = 0;
  const answers = liveAnswers({
    out: {
      text: (text) => {
        written += text;
      },
    },
    bar: {
      pause: () => {
        pauses++;
        return () => pauses--;
      },
    },
    colour: true,
    columns: () => 60,
  });
  const delta = (messageId: string, deltaContent: string) =>
    answers.show(event("assistant.message_delta", { messageId, deltaContent }));
  delta("1", "I look ");
  expect(readable(written)).toBe("I look");
  expect(pauses).toBe(1);
  delta("1", "at **it");
  expect(readable(written)).toBe("I look at");
  answers.show(event("assistant.message", { messageId: "1", content: "I look at **it" }));
  expect(readable(written)).toBe("I look at **it\n");
  expect(pauses).toBe(0);
  answers.answer("I look at **it");
  expect(readable(written)).toBe("I look at **it\n");
  written = "";
  delta("2", "cut ");
  answers.show(event("troupe.retry", {}));
  delta("3", "whole");
  answers.show(event("assistant.message", { messageId: "3", content: "changed" }));
  answers.answer("changed");
  expect(written).toBe("cut\nwhole\nchanged\n");
  expect(pauses).toBe(0);
});
