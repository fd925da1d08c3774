import { expect, test } from "vitest";
import type { Message } from "../../../protocol/message.ts";
import {
  type AnsweredCall,
  exchangesIn,
  isRefusal,
  mergeLines,
  parseHits,
  parsePaths,
  parseShell,
  parseView,
  savedOutput,
} from "./evidence.ts";

const answer = (content: string, failed = false): AnsweredCall => ({ name: "any", arguments: {}, content, failed });

const TOO_LARGE = [
  "Output too large to read at once (40.0 KB). Saved to: /state/files/glob-output.txt",
  "Read parts of it with view and a view_range, or search it with grep.",
  "",
  "Preview (first 500 chars):",
  "./src/a.ts",
  "./src/b.ts",
  "./sr",
].join("\n");

test("calls are paired with their answers, whatever their order", () => {
  const messages: Message[] = [
    { role: "user", content: "go" },
    {
      role: "assistant",
      content: "",
      calls: [
        { toolCallId: "1", name: "view", arguments: { path: "a" } },
        { toolCallId: "2", name: "glob", arguments: { pattern: "*" } },
        { toolCallId: "3", name: "grep", arguments: "broken" },
      ],
    },
    { role: "tool", toolCallId: "2", content: "./a", isError: false },
    { role: "tool", toolCallId: "1", content: "Permission denied and could not", isError: false },
  ];
  expect(exchangesIn(messages)).toEqual([
    { name: "view", arguments: { path: "a" }, content: "Permission denied and could not", failed: true },
    { name: "glob", arguments: { pattern: "*" }, content: "./a", failed: false },
  ]);
});

test.each([
  ["Tool 'x' does not exist.", true],
  ["Denied by preToolUse hook: no", true],
  ["The execution of this tool, or a previous tool was interrupted.", true],
  ["1. Permission denied is only text here", false],
])("the tool result %j is a refusal: %s", (content, expected) => {
  expect(isRefusal(content)).toBe(expected);
});

test("the parser of view results reads numbered lines, empty ones included", () => {
  expect(parseView(answer("7. const a = 1;\n8. \n9.   2. nested\n10."))).toEqual({
    kind: "file",
    lines: [
      { number: 7, text: "const a = 1;" },
      { number: 8, text: "" },
      { number: 9, text: "  2. nested" },
      { number: 10, text: "" },
    ],
    cut: false,
  });
});

test("the parser of view results recognises a cut by a note or by the limit on output", () => {
  const noted = parseView(answer("1. a\n2. b\n[Cut here; the file has more lines. Continue with view_range [3, -1].]"));
  expect(noted).toMatchObject({ kind: "file", cut: true });
  const limited = parseView(
    answer("Output too large to read at once (30.0 KB). Saved to: /x\n\nPreview (first 500 chars):\n1. a\n2. b"),
  );
  expect(limited).toEqual({
    kind: "file",
    lines: [
      { number: 1, text: "a" },
      { number: 2, text: "b" },
    ],
    cut: true,
  });
});

test("the parser of view results reads a folder as names, and distinguishes empty from missing ones", () => {
  expect(parseView(answer("README.md\nsrc\n[3 more entries not shown]"))).toEqual({
    kind: "folder",
    entries: ["README.md", "src"],
    cut: true,
  });
  expect(parseView(answer("Folder /x is empty."))).toEqual({ kind: "folder", entries: [], cut: false });
  const reason = "Path /x does not exist. Please provide a valid path.";
  expect(parseView(answer(reason))).toEqual({ kind: "nothing", reason });
  expect(parseView(undefined)).toEqual({ kind: "nothing", reason: "not asked" });
});

test("the parser of paths removes their dot, and counts the omitted ones", () => {
  expect(parsePaths(answer("./a.ts\n./src/b.ts\n[12 more files not shown]"))).toEqual({
    paths: ["a.ts", "src/b.ts"],
    total: 14,
    cut: true,
  });
  expect(parsePaths(answer("No files matched the pattern."))).toEqual({ paths: [], total: 0, cut: false });
  expect(parsePaths(answer("./a", true))).toEqual({ paths: [], total: 0, cut: false });
});

test("the parser of paths omits the last, broken path of a preview", () => {
  expect(parsePaths(answer(TOO_LARGE))).toEqual({ paths: ["src/a.ts", "src/b.ts"], total: 2, cut: true });
});

test("the parser of hits reads path, line and text, colons in the text included", () => {
  const content = "/p/a.ts:3:  a: 1:2:3\n/p/b.ts:10:\n[Stopped at head_limit after 2 lines; there are more]";
  expect(parseHits(answer(content))).toEqual({
    hits: [
      { path: "/p/a.ts", line: 3, text: "  a: 1:2:3" },
      { path: "/p/b.ts", line: 10, text: "" },
    ],
    cut: true,
  });
  expect(parseHits(answer("No matches found."))).toEqual({ hits: [], cut: false });
});

test("the parser of shell results removes the exit code, and returns nothing for a failure", () => {
  expect(parseShell(answer(" M a.ts\n<exited with exit code 0>"))).toBe(" M a.ts");
  expect(parseShell(answer("fatal: no repository\n<exited with exit code 128>"))).toBeUndefined();
  expect(parseShell(undefined)).toBeUndefined();
});

test("a saved result is found by its path, with ranges that cover it", () => {
  const saved = savedOutput(TOO_LARGE);
  expect(saved?.path).toBe("/state/files/glob-output.txt");
  expect(saved?.ranges[0]).toEqual([1, 300]);
  expect(saved?.ranges.length).toBe(10);
  expect(savedOutput("1. Output too large to read at once (40.0 KB). Saved to: /x")).toBeUndefined();
});

test("a notice with a number of lines gives ranges that end with the last line", () => {
  const notice =
    "Output too large to read at once (30.0 KB). Saved to: /x\nRead parts of it with view (700 lines), or grep.";
  const saved = savedOutput(`${notice}\n\nPreview (first 500 chars):\na\nb`);
  expect(saved?.lines).toBe(700);
  expect(saved?.ranges.at(-1)?.[1]).toBe(700);
  expect(saved?.ranges.every(([first]) => first <= 700)).toBe(true);
});

test("views of one file are joined in the order of lines", () => {
  const parts = [
    [{ number: 3, text: "c" }],
    [
      { number: 1, text: "a" },
      { number: 3, text: "new" },
    ],
  ];
  expect(mergeLines(parts)).toEqual([
    { number: 1, text: "a" },
    { number: 3, text: "new" },
  ]);
});
