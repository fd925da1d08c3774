import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolSearch } from "../../src/tools/mcp/search.ts";
import { compilePattern, wordsOf } from "../../src/tools/mcp/search-pattern.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { processorTime } from "../support/work.ts";
import { contentOf, contextFor, failureOf } from "../tools/workspace.ts";

const tool = (name: string, description = `Does ${name}.`): Tool => ({
  name,
  description,
  parameters: { type: "object", properties: { id: { type: "string" } } },
  readOnly: false,
  exclusive: false,
  endsAnswer: false,
  timeoutMs: 1000,
  bind: () => ({ access: async () => [], run: async () => ({ content: name }) }),
});

const builtin = [tool("view"), tool("bash")];
const foreign = ["github-create_issue", "github-list_issues", "slack-send", "mail-send", "mail-list"].map((name) =>
  tool(name),
);
const defer = ({ name }: Tool) => (builtin.some((one) => one.name === name) ? "never" : "auto");
const names = (tools: readonly Tool[]): string[] => tools.map(({ name }) => name);

function many(threshold = 3) {
  const search = toolSearch({ tools: [...builtin, ...foreign], threshold, defer });
  const ask = (input: object): Promise<string> => contentOf(search.tool ?? tool("none"), input, contextFor("/"));
  return { search, ask };
}

describe("deferred tools", () => {
  it("deferred tools are offered like all others up to the threshold, without a search", () => {
    const { search } = many(7);
    expect([names(search.offered()), search.tool]).toEqual([names([...builtin, ...foreign]), undefined]);
    const usual = toolSearch({
      tools: Array.from({ length: 30 }, (_, index) => tool(`t${index}`)),
      defer: () => "auto",
    });
    expect(usual.offered()).toHaveLength(30);
  });

  it("deferred tools are found by a search, and then offered behind the rest in the order they were loaded", async () => {
    const { search, ask } = many();
    expect(names(search.offered())).toEqual(["view", "bash", "tool_search_tool_regex"]);
    expect(await ask({ pattern: "mail.*send|slack" })).toBe(
      [
        "2 tools found, callable from now on.",
        '{"name":"slack-send","description":"Does slack-send.","parameters":{"type":"object","properties":{"id":{"type":"string"}}}}',
        '{"name":"mail-send","description":"Does mail-send.","parameters":{"type":"object","properties":{"id":{"type":"string"}}}}',
      ].join("\n"),
    );
    await ask({ pattern: "ISSUE", limit: 1 });
    search.load(["mail-send", "mail-list", "nonsense"]);
    const loaded = ["view", "bash", "tool_search_tool_regex", "slack-send", "mail-send", "github-create_issue"];
    expect(names(search.offered())).toEqual([...loaded, "mail-list"]);
    expect(await ask({ pattern: "issue", limit: 1 })).toMatch(
      /^1 tool found, callable from now on \(some were before\)\.\n.*\n\[1 more match not shown/,
    );
  });

  it("a tool can be deferred never or always", () => {
    const tools = [...builtin, tool("a"), tool("b"), tool("c")];
    const search = toolSearch({
      tools,
      threshold: 4,
      defer: ({ name }) => (name === "a" ? "always" : name === "b" ? "auto" : "never"),
    });
    expect(names(search.offered())).toEqual(["view", "bash", "c", "tool_search_tool_regex"]);
    search.update(tools.slice(0, 4));
    expect(names(search.offered())).toEqual(["view", "bash", "b", "tool_search_tool_regex"]);
  });

  it("a call loads a deferred tool", () => {
    const { search } = many();
    expect(search.find("mail-list")?.name).toBe("mail-list");
    expect(names(search.offered()).at(-1)).toBe("mail-list");
    expect([search.find("view")?.name, search.find("nothing")]).toEqual(["view", undefined]);
    expect(search.find("tool_search_tool_regex")).toBe(search.tool);
  });

  it("deferred tools stay offered when a longer list would now defer them, and leave with their server", () => {
    const search = toolSearch({ tools: [...builtin, ...foreign.slice(0, 1)], threshold: 3, defer });
    expect(search.tool).toBeUndefined();
    search.update([...builtin, ...foreign]);
    expect(names(search.offered())).toEqual(["view", "bash", "tool_search_tool_regex", "github-create_issue"]);
    search.update([...builtin, ...foreign.slice(1)]);
    expect(names(search.offered())).toEqual(["view", "bash", "tool_search_tool_regex"]);
  });
});

describe("the search", () => {
  it("the tool search lists matches in names before matches in descriptions", async () => {
    const tools = [tool("a", "about issue"), tool("b", "nothing"), tool("issue", "c")];
    const search = toolSearch({ tools, threshold: 0, defer: () => "auto" });
    const text = await contentOf(search.tool ?? tool("none"), { pattern: "issue" }, contextFor("/"));
    expect([...text.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name)).toEqual(["issue", "a"]);
  });

  it("the tool search uses the words of an unsupported pattern, and says so", async () => {
    const { ask } = many();
    const text = await ask({ pattern: "(?=github)(list|\\1)+issues" });
    expect(text).toMatch(/^The pattern is not supported; searched for its words instead: github, list, issues\./);
    expect(text).toContain('{"name":"github-list_issues"');
  });

  it("the tool search lists the tools when nothing matches", async () => {
    const { ask } = many();
    expect(await ask({ pattern: "calendar" })).toBe(
      `No tool matches "calendar". There are: ${names(foreign).join(", ")}.`,
    );
    const { search } = many();
    const failure = await failureOf(search.tool ?? tool("none"), { pattern: "" }, contextFor("/"));
    expect(failure.message).toContain("Bad arguments for tool_search_tool_regex");
  });

  it("the tool search is bounded and fast, whatever the pattern and the descriptions are", async () => {
    const text = "a".repeat(50_000);
    const tools = Array.from({ length: 200 }, (_, index) => ({ ...tool(`t${index}`, text), parameters: { text } }));
    const search = toolSearch({ tools, defer: () => "auto" });
    const spent = processorTime();
    for (const pattern of ["(a+)+$b", "(a|a)*b", "(a*)*b", "a*a*a*a*a*a*a*b", "((a{0,50}){0,50}){0,50}b", "t1"]) {
      const said = await contentOf(search.tool ?? tool("none"), { pattern, limit: 20 }, contextFor("/"));
      expect(said.length).toBeLessThan(20_000);
    }
    expect(spent()).toBeLessThan(4000);
  });
});

describe("a pattern", () => {
  const matches = (pattern: string, text: string) => compilePattern(pattern, { steps: 1e6 })?.(text);

  it("a pattern of the tool search matches as a regular expression does", () => {
    const atom = fc.constantFrom(
      "a",
      "b",
      "_",
      ".",
      "[ab]",
      "[^a]",
      "[a-c_]",
      "\\w",
      "\\d",
      "\\.",
      "(?:ab|c)",
      "(a|)",
      "\\b",
    );
    const piece = fc.tuple(atom, fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?")).map((two) => {
      return two[0] === "\\b" ? two[0] : two.join("");
    });
    const sequence = fc.array(piece, { maxLength: 4 }).map((parts) => parts.join(""));
    const pattern = fc.tuple(
      fc.constantFrom("", "^"),
      fc.array(sequence, { minLength: 1, maxLength: 3 }),
      fc.constantFrom("", "$"),
    );
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "_", ".", "1", " ", "A"), maxLength: 12 });
    fc.assert(
      fc.property(pattern, text, ([start, parts, end], subject) => {
        const source = `${start}${parts.join("|")}${end}`;
        expect([source, matches(source, subject)]).toEqual([source, new RegExp(source, "is").test(subject)]);
      }),
      { numRuns: process.env.TROUPE_SLOW ? 20_000 : 800 },
    );
  });

  it.each(["(a", "a)", "[a", "*a", "a**", "(?<n>a)", "(?!a)", "\\1", "\\p{L}", "a{99}", "a\\", "x".repeat(201)])(
    "a pattern of another kind is not used in the tool search: %s",
    (pattern) => {
      expect(compilePattern(pattern, { steps: 1e6 })).toBeUndefined();
    },
  );

  it("a pattern of the tool search is split into words", () => {
    expect(wordsOf("(?i)\\bcreate_issue{2,3}|Müll|x")).toEqual(["create", "issue", "müll"]);
  });
});
