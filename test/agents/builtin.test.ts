import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { builtinAgents as all } from "../../src/agents/builtin/parsed.derived.ts";
import { builtinTexts } from "../../src/agents/builtin/texts.ts";
import { effectiveTools } from "../../src/agents/effective-tools.ts";
import { modelChoices } from "../../src/agents/model-choices.ts";
import { plainFrontmatter } from "../../src/context/skills/frontmatter-fast.ts";
import { agentTools, builtinTools, searchTools } from "../../src/tools/builtin.ts";

const find = (name: string) => all.find((agent) => agent.name === name) ?? expect.fail(`no agent ${name}`);
const SESSION = [...builtinTools.map(({ name }) => name), "task", "web_search", "context_board", "github-search_code"];
const TOOLS = [...builtinTools, ...searchTools, ...agentTools.map((make) => make({ agents: () => [] }))];
const traitsOf = (name: string) => TOOLS.find((tool) => tool.name === name);
const toolsOf = (name: string) => effectiveTools(find(name), SESSION, { traitsOf }).tools;
const WRITING = ["create", "edit", "apply_patch"];

describe("built-in agents", () => {
  it("built-in agents have one file each, which is named after the agent", () => {
    const files = readdirSync("src/agents/builtin").filter((name) => name.endsWith(".md"));
    expect(files.sort()).toEqual([...builtinTexts.keys()].map((name) => `${name}.md`).sort());
    expect(all.map(({ name }) => name)).toEqual([...builtinTexts.keys()]);
  });

  it.each([...builtinTexts])("%s is short, and is read without YAML", (_name, text) => {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2560);
    expect(plainFrontmatter(text)).toBeDefined();
  });

  it.each(all)(
    "$name has a short description, and its text describes the form of the answer",
    ({ description, prompt }) => {
      expect(description.length).toBeGreaterThan(60);
      expect(description.length).toBeLessThanOrEqual(300);
      for (const heading of ["## How to work", "## What not to do", "## Your answer"])
        expect(prompt).toContain(heading);
    },
  );

  it("built-in agents take fewer than 1,800 characters of the first request", () => {
    expect(JSON.stringify(modelChoices(all)).length).toBeLessThan(1800);
  });

  it("ORC-13 explore only reads and searches", () => {
    expect(toolsOf("explore")).toEqual(["view", "glob", "grep"]);
  });

  it("ORC-14 ORC-15 task and general-purpose have every tool, and only the second receives the repository's instructions", () => {
    expect(toolsOf("task")).toEqual(SESSION);
    expect(toolsOf("general-purpose")).toEqual(SESSION);
    expect(all.filter((agent) => agent.includeCustomInstructions).map(({ name }) => name)).toEqual(["general-purpose"]);
  });

  it.each(["rubber-duck", "code-review"])("ORC-16 ORC-17 %s has no tool that writes files, but a shell", (name) => {
    expect(toolsOf(name).filter((tool) => WRITING.includes(tool))).toEqual([]);
    expect(toolsOf(name)).toContain("bash");
  });

  it("ORC-18 research searches and fetches, and of other tools it has those that are known to change nothing", () => {
    expect(toolsOf("research")).toEqual(["view", "glob", "grep", "web_fetch", "web_search"]);
    const reading = () => ({ readOnly: true });
    expect(effectiveTools(find("research"), SESSION, { traitsOf: reading }).tools).toContain("github-search_code");
  });

  it("ORC-19 rem-agent has only the context board and cannot be chosen", () => {
    expect(toolsOf("rem-agent")).toEqual(["context_board"]);
    expect(modelChoices(all).map(({ name }) => name)).not.toContain("rem-agent");
    expect(find("rem-agent")).toMatchObject({ infer: false, userInvocable: false });
  });
});
