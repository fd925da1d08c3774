import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { findAgent } from "../../src/agents/names.ts";
import { agentSettings } from "../../src/catalog/agents/agents-settings.ts";
import { checkEvent } from "../../src/protocol/event.ts";
import { leastProcessorTime } from "../support/work.ts";
import { agent, agentStage, customNames } from "./stage.ts";

const OURS = ["explore", "task", "general-purpose", "rubber-duck", "code-review", "research"];

describe("agents of a session", () => {
  it("ORC-11 a session has only the built-in agents when nothing else defines any", async () => {
    await using stage = await agentStage();
    const { agents, notices, updated } = await stage.load();
    expect(agents.map(({ name }) => name)).toEqual(OURS);
    expect({ notices, updated }).toEqual({ notices: [], updated: { agents: [], warnings: [], errors: [] } });
  });

  it("ORC-20 ORC-21 SDK-01 agents come from program, person, project, added folders and plugins, in this order", async () => {
    await using stage = await agentStage({
      "home/.troupe/agents/mine.md": agent("mine"),
      "home/.claude/agents/claude-mine.md": agent("claude-mine"),
      "work/.troupe/agents/own.agent.md": agent("own"),
      "work/.github/agents/hub.agent.md": agent("hub"),
      "work/.claude/agents/claude.md": agent("claude"),
      "work/.claude/agents/README.md": "How our agents work.\n",
      "work/.claude/agents/notes.txt": "no agent",
      "other/.github/agents/added.md": agent("added"),
      "plugin/agents/plugged.md": agent("plugged"),
    });
    const catalog = await stage.load({
      program: [{ name: "hosted", prompt: "Do." }],
      plugins: [{ name: "plug", agentFolders: [stage.at("plugin/agents")] }],
      addedDirectories: [stage.at("other")],
    });
    expect(customNames(catalog)).toEqual([
      "hosted (program)",
      "mine (user)",
      "claude-mine (user)",
      "own (project)",
      "hub (project)",
      "claude (project)",
      "added (project)",
      "plugged (plugin)",
    ]);
    expect(catalog.notices).toEqual([]);
    expect(findAgent("plug:plugged", catalog.agents)).toMatchObject({ id: "plugged", pluginName: "plug" });
    expect(findAgent("OWN", catalog.agents)).toMatchObject({
      id: "own",
      path: stage.at("work/.troupe/agents/own.agent.md"),
    });
  });

  it("agents with one name are resolved by scope and folder depth, and each conflict is reported", async () => {
    await using stage = await agentStage({
      "home/.troupe/agents/x.md": agent("Shared Agent", "", "of the person"),
      "work/.github/agents/y.md": agent("shared_agent", "", "of the project"),
      "home/.troupe/agents/hosted.md": agent("hosted"),
      "work/.github/agents/deep.md": agent("deep", "", "above"),
      "work/a/.github/agents/other-id.md": agent("Deep", "", "below"),
      "work/a/.claude/agents/same.md": agent("same", "", "second"),
      "work/a/.troupe/agents/same.md": agent("same", "", "first"),
    });
    const catalog = await stage.load({ cwd: stage.at("work/a"), program: [{ name: "HOSTED", prompt: "p" }] });
    const of = (name: string) => findAgent(name, catalog.agents)?.description;
    expect(customNames(catalog)).toEqual([
      "HOSTED (program)",
      "Shared Agent (user)",
      "same (project)",
      "Deep (project)",
    ]);
    expect([of("shared agent"), of("deep"), of("same")]).toEqual(["of the person", "below", "first"]);
    expect(catalog.notices.map(({ kind, path }) => [kind, path])).toEqual([
      ["clash", stage.at("home/.troupe/agents/hosted.md")],
      ["clash", stage.at("work/a/.claude/agents/same.md")],
      ["clash", stage.at("work/.github/agents/deep.md")],
      ["clash", stage.at("work/.github/agents/y.md")],
    ]);
  });

  it("a repository's agents cannot replace a built-in agent, but agents of the user or a program can", async () => {
    await using stage = await agentStage({
      "work/.github/agents/explore.md": agent("explore", "", "hostile"),
      "work/.github/agents/innocent.md": agent("General Purpose", "", "hostile"),
      "home/.troupe/agents/task.md": agent("task", "", "my own"),
    });
    const { agents, notices } = await stage.load({ program: [{ name: "research", prompt: "p", description: "host" }] });
    const of = (name: string) => findAgent(name, agents);
    expect(of("explore")?.source).toBe("builtin");
    expect(of("general-purpose")?.source).toBe("builtin");
    expect(of("task")).toMatchObject({ source: "user", description: "my own" });
    expect(of("research")).toMatchObject({ source: "program" });
    expect(agents.filter(({ name }) => name === "task")).toHaveLength(1);
    expect(notices.map(({ kind }) => kind)).toEqual(["clash", "clash"]);
    expect(notices[0]?.message).toContain("explore is built in");
  });

  it("broken agent files are omitted with a notice of file and line, and the others load", async () => {
    await using stage = await agentStage({
      "work/.github/agents/bad.md": "---\ndescription: d\ntools: 5\n---\nx\n",
      "work/.github/agents/binary.md": new Uint8Array([0x2d, 0xff, 0xfe]),
      "work/.github/agents/good.md": agent("good", "extra: 1\n"),
      "work/.github/agents/huge.md": "x".repeat(70_000),
      "work/.github/agents/folder.md/inner": "",
    });
    const { updated, ...catalog } = await stage.load();
    expect(customNames({ ...catalog, updated })).toEqual(["good (project)"]);
    expect(updated.errors).toEqual([
      expect.stringMatching(/^The agent bad is not used: .*bad\.md:3: tools: /),
      expect.stringMatching(/binary\.md:1: it is not UTF-8 text/),
      expect.stringMatching(/huge\.md:1: it is larger than 64 KiB/),
    ]);
    expect(updated.warnings).toEqual([expect.stringMatching(/good\.md:4: extra is not a field of an agent/)]);
  });

  it("the agents of a session are reported in the form of the wire contract", async () => {
    await using stage = await agentStage({
      "home/.troupe/agents/mine.md": agent("Mine", "tools: view\nmodel: gpt-5\nuser-invocable: false\n"),
    });
    const { updated } = await stage.load();
    expect(updated).toEqual({
      agents: [
        {
          id: "mine",
          name: "Mine",
          displayName: "Mine",
          description: "What Mine does",
          source: "user",
          tools: ["view"],
          userInvocable: false,
          model: "gpt-5",
        },
      ],
      warnings: [],
      errors: [],
    });
    const event = { id: "1", timestamp: "2026-01-01T00:00:00.000Z", parentId: null, ephemeral: true };
    expect(checkEvent({ ...event, type: "session.custom_agents_updated", data: updated }).ok).toBe(true);
  });

  it("agents are not read through links that lead out of the repository", async () => {
    await using stage = await agentStage({
      "secret/key.md": agent("secret"),
      "secret/agents/other.md": agent("other"),
      "work/.github/agents/ok.md": agent("ok"),
      "home/dotfiles/linked.md": agent("linked"),
    });
    await symlink(stage.at("secret/key.md"), stage.at("work/.github/agents/link.md"));
    await mkdir(stage.at("work/.claude"));
    await symlink(stage.at("secret/agents"), stage.at("work/.claude/agents"));
    await mkdir(stage.at("home/.troupe/agents"), { recursive: true });
    await symlink(stage.at("home/dotfiles/linked.md"), stage.at("home/.troupe/agents/linked.md"));
    const catalog = await stage.load();
    expect(customNames(catalog)).toEqual(["linked (user)", "ok (project)"]);
    expect(catalog.notices.map(({ kind, path }) => [kind, path])).toEqual([
      ["refused", stage.at("work/.claude/agents")],
      ["broken", stage.at("work/.github/agents/link.md")],
    ]);
  });

  it("SDK-02 agents fail to load when a program gives one without a prompt", async () => {
    await using stage = await agentStage();
    await expect(stage.load({ program: [{ name: "x" }] })).rejects.toThrow("x: prompt is missing");
  });
});

describe("settings of agents", () => {
  it("switch agents off by any of their names", async () => {
    await using stage = await agentStage({ "work/.github/agents/a.md": agent("Alpha One") });
    const overrides = { "general purpose": { disabled: true }, research: { model: 5 } };
    const catalog = await stage.load({
      disabled: ["ALPHA_ONE"],
      overrides,
      excludedBuiltins: ["Task", "rubber-duck"],
    });
    expect(catalog.agents.map(({ name }) => name)).toEqual(["explore", "code-review", "research"]);
    expect(catalog.disabled.map(({ name }) => name)).toEqual(["Alpha One", "general-purpose"]);
    expect(catalog.updated.agents).toEqual([]);
    expect(catalog.notices).toEqual([
      { kind: "field", path: "settings", message: expect.stringMatching(/^subagents\.agents\.research\.model/) },
    ]);
  });

  it("settings of agents decide model and effort", () => {
    const overrides = { "Code Review": { model: "gpt-5", effortLevel: "high", later: true } };
    expect(agentSettings({ id: "code-review", name: "code-review" }, overrides)).toEqual({
      model: "gpt-5",
      reasoningEffort: "high",
    });
    expect(agentSettings({ id: "constructor", name: "constructor" }, overrides)).toEqual({});
  });

  it("ORC-19 rem-agent exists only where there is a memory", async () => {
    await using stage = await agentStage();
    expect((await stage.load({ optional: ["rem-agent"] })).agents.map(({ name }) => name)).toEqual([
      ...OURS,
      "rem-agent",
    ]);
  });
});

describe("MCP servers of an agent", () => {
  const servers =
    'mcp-servers: { docs: { command: docs-server }, bad: { command: 5 }, other: { url: "https://x.test/" } }\n';
  const tree = { "work/.github/agents/a.md": agent("a", servers), "home/.troupe/agents/b.md": agent("b", servers) };

  it("an agent's MCP servers need trust when a repository defines them, but not when the user does", async () => {
    await using stage = await agentStage(tree);
    const { agents, notices } = await stage.load();
    expect(findAgent("a", agents)).not.toHaveProperty("mcpServers");
    expect(Object.keys(findAgent("b", agents)?.mcpServers ?? {})).toEqual(["docs", "bad", "other"]);
    expect(notices.map(({ kind }) => kind)).toEqual(["untrusted", "field", "untrusted"]);
    expect(notices[0]?.message).toMatch(/cannot use its MCP server docs: this folder is not trusted.*troupe trust$/);
  });

  it("ORC-25 an agent's MCP servers from a repository are used as they were approved", async () => {
    await using stage = await agentStage(tree);
    const asked: string[] = [];
    const { agents, notices } = await stage.load({
      check: ({ kind, id, shown }) => {
        asked.push(`${kind} ${id.replace(stage.at("work"), "")} ${shown}`);
        return id.endsWith("#docs") ? "approved" : "changed";
      },
    });
    expect(findAgent("a", agents)?.mcpServers).toEqual({ docs: { command: "docs-server" } });
    expect(asked[0]).toMatch(/^mcp \/\.github\/agents\/a\.md#docs program: docs-server/);
    expect(notices.map(({ kind }) => kind)).toEqual(["field", "changed"]);
  });
});

test("a hundred agents cost milliseconds, and none nearly nothing", async () => {
  const tree = Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => [
      join("work/.github/agents", `agent-${index}.md`),
      agent(`agent-${index}`, index % 2 ? "tools: view, grep\n" : "tools: [view, grep]\nuser-invocable: true\n"),
    ]),
  );
  await using none = await agentStage();
  await using many = await agentStage(tree);
  expect(customNames(await many.load())).toHaveLength(100);
  expect(await leastProcessorTime(() => many.load(), 7)).toBeLessThan(80);
  expect(await leastProcessorTime(() => none.load(), 7)).toBeLessThan(5);
});
