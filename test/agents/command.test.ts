import { stat } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { Arguments } from "../../src/cli/args.ts";
import { agentsCommand } from "../../src/cli/commands/agents.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { type AgentStage, agent, agentStage } from "./stage.ts";

function given(line: string): Arguments {
  const all = line.split(" ");
  return {
    words: ["agents", ...all.filter((word) => !word.startsWith("--")).map((word) => word.replaceAll("+", " "))],
    flags: all.flatMap((word) => (word.startsWith("--") ? [word.slice(2)] : [])),
    without: () => [],
    has: (name) => all.includes(`--${name}`),
    text: () => undefined,
    list: () => [],
    amount: () => undefined,
    choice: () => undefined,
  };
}

async function run(stage: AgentStage, line: string) {
  const printed: string[] = [];
  const said: string[] = [];
  const code = await agentsCommand(given(line), {
    sources: { ...stage.sources, disabled: ["research"] },
    disk: nodeDisk,
    print: (text) => void printed.push(text),
    say: (text) => void said.push(text),
  });
  return { code, out: printed.join(""), said };
}

describe("troupe agents", () => {
  it("troupe agents lists every agent with its source, model, tools and purpose", async () => {
    await using stage = await agentStage({
      "work/.github/agents/a.md": agent("alpha", "tools: view\nmodel: gpt-5\n", "Does \u001b[31mred"),
    });
    const { code, out } = await run(stage, "list");
    expect(code).toBe(0);
    const lines = out.split("\n");
    expect(lines[0]).toMatch(/^alpha +project +gpt-5 +1 tool +Does red$/);
    expect(lines.find((line) => line.startsWith("explore"))).toMatch(/builtin +- +4 tools, reading +Finds/);
    expect(lines.find((line) => line.startsWith("research"))).toContain("builtin, off");
    const rows = JSON.parse((await run(stage, "list --json")).out);
    expect(rows[0]).toMatchObject({ name: "alpha", source: "project", tools: ["view"], enabled: true });
    expect(rows[0]).not.toHaveProperty("prompt");
  });

  it("troupe agents shows one agent whole, by any of its names", async () => {
    await using stage = await agentStage({ "work/.github/agents/a.md": agent("Alpha One") });
    const { out } = await run(stage, "show alpha_one");
    expect(out).toMatch(/^name +Alpha One\nid +a\n/);
    expect(out).toContain("\n\nYou are Alpha One.\n");
    expect(JSON.parse((await run(stage, "show explore --json")).out)).toMatchObject({
      name: "explore",
      readOnly: true,
    });
    await expect(run(stage, "show exlore")).rejects.toMatchObject({ kind: "usage", hint: "Did you mean explore?" });
  });

  it("troupe agents writes a new agent that is sound, and never over another", async () => {
    await using stage = await agentStage();
    const project = await run(stage, "new Release+Notes");
    expect(project.out).toBe(`${stage.at("work/.troupe/agents/release-notes.md")}\n`);
    const own = await run(stage, "new mine --user");
    expect(own.out).toBe(`${stage.at("home/.troupe/agents/mine.md")}\n`);
    expect((await stat(own.out.trim())).mode & 0o777).toBe(0o600);
    expect((await stat(project.out.trim())).mode & 0o777).toBe(0o644);
    expect(await run(stage, "check")).toEqual({
      code: 0,
      out: expect.stringMatching(/^(?:\S+\.md:4: warning: description is still that of the template.*\n){2}$/),
      said: ["2 files read, 0 errors, 2 warnings"],
    });
    expect((await run(stage, "list")).out).toMatch(/^mine .*\nRelease Notes /);
    await expect(run(stage, "new release_notes --user")).rejects.toThrow("The agent Release Notes already exists");
    await expect(run(stage, "new explore")).rejects.toThrow("(built in)");
    await expect(run(stage, "new ../../x")).rejects.toThrow("cannot be the name");
    await stage.folder.files({ "work/.troupe/agents/taken.md": "broken" });
    await expect(run(stage, "new taken")).rejects.toThrow("already exists");
    expect(await stage.folder.read("work/.troupe/agents/taken.md")).toBe("broken");
  });

  it("troupe agents checks every file, and fails with file and line when one is broken", async () => {
    await using stage = await agentStage({
      "work/.github/agents/bad.md": "---\ndescription: d\ntools: 5\n---\nx\n",
      "work/.github/agents/good.md": agent("good", "extra: 1\n"),
      "home/.troupe/agents/good.md": agent("good"),
      "elsewhere/third.md": agent("third"),
    });
    const { code, out, said } = await run(stage, "check");
    expect(code).toBe(1);
    const lines = out.replaceAll(stage.folder.path, "").trimEnd().split("\n");
    expect(lines).toEqual([
      expect.stringMatching(/^\/work\/\.github\/agents\/bad\.md:3: error: tools: /),
      expect.stringMatching(/good\.md:4: warning: extra is not a field of an agent$/),
      expect.stringMatching(/^\/work\/\.github\/agents\/good\.md:1: warning: .*comes first\.$/),
    ]);
    expect(said).toEqual(["3 files read, 1 error, 2 warnings"]);
    expect((await run(stage, "check ../elsewhere .github/agents/good.md")).code).toBe(0);
    expect((await run(stage, "check .github/agents")).code).toBe(1);
    await expect(run(stage, "check nowhere.md")).rejects.toThrow("does not exist");
  });

  it("troupe agents names the nearest subcommand", async () => {
    await using stage = await agentStage();
    await expect(run(stage, "lsit")).rejects.toThrow("Did you mean list?");
    await expect(run(stage, "constructor")).rejects.toThrow("Unknown: troupe agents constructor");
    await expect(run(stage, "new a --user --project")).rejects.toThrow("Choose one");
  });
});
