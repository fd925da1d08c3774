import { describe, expect, it } from "vitest";
import {
  chooseTools,
  mainTools,
  requireKnown,
  type ToolChoice,
  unknownEntries,
} from "../../src/runtime/setup/tool-choice.ts";
import { externalTool } from "../../src/session/requests/external-tools.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { tool } from "../support/stage.ts";

const builtin = (name: string): Tool => tool(name, async () => name);
const mcp = (serverName: string, toolName: string): Tool => ({
  ...builtin(`${serverName}-${toolName}`),
  origin: { kind: "mcp", serverName, toolName },
});
const custom = (name: string): Tool => externalTool({ name });
const all = [builtin("view"), builtin("edit"), mcp("docs", "search"), mcp("docs", "view"), custom("lookup")];
const names = (tools: readonly Tool[]): string[] => tools.map(({ name }) => name);
const chosen = (choice: ToolChoice): string[] => names(mainTools(chooseTools(all, choice), choice));

describe("the tools that a session is offered", () => {
  it.each<[string, ToolChoice, string[]]>([
    ["nothing said: all", {}, ["view", "edit", "docs-search", "docs-view", "lookup"]],
    ["SDK-26: an allow-list", { available: ["view", "lookup"] }, ["view", "lookup"]],
    ["an empty allow-list: none", { available: [] }, []],
    ["SDK-27: a block-list", { excluded: ["edit", "lookup"] }, ["view", "docs-search", "docs-view"]],
    ["a name means it whatever its source", { available: ["docs-view"] }, ["docs-view"]],
    ["a source and a name", { available: ["builtin:view", "custom:lookup"] }, ["view", "lookup"]],
    ["a source and a name of another source", { available: ["mcp:view"] }, []],
    ["a whole source", { available: ["mcp:*"] }, ["docs-search", "docs-view"]],
    ["a whole source out", { excluded: ["mcp:*", "custom:*"] }, ["view", "edit"]],
    ["a star alone is not a name", { available: ["*"] }, []],
    ["out beats in", { available: ["view", "edit"], excluded: ["builtin:edit"] }, ["view"]],
    [
      "SDK-25: hidden from the main agent only",
      { hiddenFromMain: ["edit"] },
      ["view", "docs-search", "docs-view", "lookup"],
    ],
    [
      "SDK-28: the session's filters first, then the main agent's",
      { available: ["view", "edit"], hiddenFromMain: ["edit"] },
      ["view"],
    ],
  ])("the tools of a session are chosen: %s", (_, choice, expected) => {
    expect(chosen(choice)).toEqual(expected);
  });

  it("SDK-25 tools hidden from the main agent are offered to an agent that lists them", () => {
    expect(names(chooseTools(all, { hiddenFromMain: ["edit"] }))).toContain("edit");
  });

  it("SDK-28 excluded tools are not offered to any agent", () => {
    expect(names(chooseTools(all, { excluded: ["edit"], hiddenFromMain: ["edit"] }))).not.toContain("edit");
  });

  it.each(["web_search", "builtin:web_search", "tool_search_tool_regex", "ask_user", "store_memory"])(
    "a session may exclude %s where it is not offered",
    (entry) => {
      expect(() => requireKnown(all, { excluded: [entry] })).not.toThrow();
    },
  );

  it("unknown entries in the tools of a session are found, with the nearest name", () => {
    expect(unknownEntries(all, { available: ["view", "mcp:*", "veiw"], excluded: ["builtin:lookup"] })).toEqual([
      "veiw",
      "builtin:lookup",
    ]);
    expect(() => requireKnown(all, { available: ["veiw"] })).toThrow(/"veiw", which does not exist/);
  });
});
