import { describe, expect, it } from "vitest";
import { parseRule, parseRules, parseUrlRule } from "../../src/permissions/rules.ts";
import { names } from "./stage.ts";

const allow = { effect: "allow", source: { name: "--allow-tool" } } as const;
const target = (text: string) => parseRule(text, allow, names).target;

it("permission rules keep text, effect and source with the target", () => {
  expect(parseRule(" shell(git push) ", { effect: "deny", source: { name: "settings.json", line: 7 } }, names)).toEqual(
    {
      text: "shell(git push)",
      effect: "deny",
      source: { name: "settings.json", line: 7 },
      target: { kind: "shell", words: ["git", "push"], stem: false },
    },
  );
});

it("permission rules are parsed in every form", () => {
  const forms = {
    shell: { kind: "shell", stem: false },
    Shell: { kind: "shell", stem: false },
    "shell(git:*)": { kind: "shell", words: ["git"], stem: true },
    "shell(git *)": { kind: "shell", words: ["git"], stem: true },
    "shell(npm run build:*)": { kind: "shell", words: ["npm", "run", "build"], stem: true },
    write: { kind: "write" },
    "write(docs/a b.md)": { kind: "write", path: "docs/a b.md" },
    "read(.env)": { kind: "read", path: ".env" },
    "read(app/[id]/(x).tsx)": { kind: "read", path: "app/[id]/(x).tsx" },
    url: { kind: "url" },
    memory: { kind: "memory" },
    github: { kind: "mcp", server: "github" },
    "github(search_code)": { kind: "mcp", server: "github", tool: "search_code" },
    read: { kind: "read" },
    "mcp(read)": { kind: "mcp", server: "read" },
    "mcp(read/x)": { kind: "mcp", server: "read", tool: "x" },
    deploy: { kind: "custom-tool", tool: "deploy" },
    view: { kind: "read" },
    "bash(make)": { kind: "shell", words: ["make"], stem: false },
  };
  expect(Object.fromEntries(Object.keys(forms).map((text) => [text, target(text)]))).toEqual(forms);
});

it("lists of permission rules are split at commas outside of parentheses", () => {
  const list = parseRules("shell(git:*),write(a,b), read", allow, names);
  expect(list.map((rule) => rule.text)).toEqual(["shell(git:*)", "write(a,b)", "read"]);
});

it("rules of the URL flags accept addresses only", () => {
  expect(parseUrlRule("https://x.com", { effect: "deny", source: { name: "--deny-url" } }).text).toBe(
    "url(https://x.com)",
  );
});

describe("a rule that cannot be used is an error with its place and a remedy", () => {
  const source = { name: "settings.json", line: 12 };
  it.each([
    ["shel(git)", '"shel" is neither a kind, a tool nor an MCP server (did you mean shell?)'],
    ["gitub(x)", '"gitub" is neither a kind, a tool nor an MCP server (did you mean github?)'],
    [
      "zzzzzzzz",
      '"zzzzzzzz" is neither a kind, a tool nor an MCP server (known kinds are shell, read, write, url, memory, mcp, mcp-sampling, custom-tool, agent, sandbox-off)',
    ],
    ["", "it is empty"],
    ["shell(git", "the closing ) is missing"],
    ["(x)", "it must read kind or kind(argument), with one pair of parentheses around the argument"],
    ["shell()", "its argument is empty; write shell to mean all of that kind"],
    ["shell( *)", "there is no command before the *; write shell to mean every command"],
    [
      "shell(a; b)",
      "it can never match, because ; is not part of a plain command word; use shell(command) or shell(command:*)",
    ],
    [
      "shell(g*t)",
      "it can never match, because * is not part of a plain command word; use shell(command) or shell(command:*)",
    ],
    ["write(src/*/../x)", "it can never match, because .. follows a * or ?"],
    ["write(/)", "it names no file or folder"],
    ["url(ftp://x)", "only http and https can be used, not ftp"],
    ["memory(x)", "memory takes no argument"],
    ["deploy(x)", "deploy is a tool of a client program and takes no argument"],
    ["mcp", "name the server, as in mcp(server) or mcp(server/tool)"],
    ["mcp(githup)", 'no MCP server is called "githup" (did you mean github?)'],
    ["read(a\u0007)", "it holds a control character"],
  ])("a rule that cannot be used is an error with its place and a remedy: %j", (text, problem) => {
    expect(() => parseRule(text, { effect: "deny", source }, names)).toThrow(
      `settings.json:12: the rule ${JSON.stringify(text)} cannot be used: ${problem}.`,
    );
  });
});
