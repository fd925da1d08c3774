import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { approveAll } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
  await stage.client.start();
});
afterAll(() => stage[Symbol.asyncDispose]());

async function put(path: string, content: string): Promise<void> {
  await mkdir(dirname(stage.folder.at(path)), { recursive: true });
  await writeFile(stage.folder.at(path), content);
}

describe("a server without a session", () => {
  it("a server without a session finds skills, agents and instructions of a folder, and where to put new ones", async () => {
    await put("proj/.github/skills/bake/SKILL.md", "---\nname: bake\ndescription: Bakes bread\n---\nKnead.\n");
    await put("more/brew/SKILL.md", "---\nname: brew\ndescription: Brews tea\n---\nBoil.\n");
    await put("proj/.github/agents/cook.md", "---\nname: cook\ndescription: Cooks\n---\nYou cook.\n");
    await put("proj/AGENTS.md", "Wash your hands.\n");
    const { rpc } = stage.client;
    const projectPaths = [stage.folder.at("proj")];
    const { skills } = await rpc.skills.discover({ projectPaths, skillDirectories: [stage.folder.at("more")] });
    expect(skills.map(({ name, description, enabled }) => ({ name, description, enabled }))).toEqual([
      { name: "bake", description: "Bakes bread", enabled: true },
      { name: "brew", description: "Brews tea", enabled: true },
    ]);
    await rpc.skills.config.setDisabledSkills({ disabledSkills: ["brew"] });
    const after = await rpc.skills.discover({ projectPaths, skillDirectories: [stage.folder.at("more")] });
    expect(after.skills.map(({ name, enabled }) => `${name} ${enabled}`)).toEqual(["bake true", "brew false"]);
    await rpc.skills.config.setDisabledSkills({ disabledSkills: [] });
    expect((await rpc.agents.discover({ projectPaths })).agents).toMatchObject([{ name: "cook", prompt: "You cook." }]);
    const { sources } = await rpc.instructions.discover({ projectPaths, excludeHostInstructions: true });
    expect(sources).toMatchObject([{ sourcePath: stage.folder.at("proj/AGENTS.md"), location: "repository" }]);
    for (const { paths } of [
      await rpc.skills.getDiscoveryPaths({ projectPaths }),
      await rpc.agents.getDiscoveryPaths({ projectPaths }),
      await rpc.instructions.getDiscoveryPaths({ projectPaths }),
    ]) {
      const preferred = paths.filter((path) => path.preferredForCreation && path.projectPath === projectPaths[0]);
      expect(preferred).toHaveLength(1);
    }
  });

  it("a server without a session stores the user's MCP servers and settings", async () => {
    const { rpc } = stage.client;
    const config = { type: "http" as const, url: "https://mcp.example.com/mcp", tools: ["*"], timeout: 5000 };
    await rpc.mcp.config.add({ name: "docs", config });
    expect(await rpc.mcp.config.list()).toEqual({ servers: { docs: config } });
    await expect(rpc.mcp.config.add({ name: "docs", config })).rejects.toThrow(/docs/);
    await rpc.mcp.config.disable({ names: ["docs"] });
    const { servers } = await rpc.mcp.discover({ workingDirectory: stage.folder.at("work") });
    expect(servers).toEqual([{ name: "docs", type: "http", source: "user", enabled: false }]);
    await rpc.mcp.config.enable({ names: ["docs"] });
    await rpc.mcp.config.remove({ name: "docs" });
    expect(await rpc.mcp.config.list()).toEqual({ servers: {} });

    const before = await rpc.user.settings.get();
    expect(before.settings.stream).toEqual({ value: false, default: false, isDefault: true });
    expect(await rpc.user.settings.set({ settings: { stream: true } })).toEqual({ shadowedKeys: [] });
    expect((await rpc.user.settings.get()).settings.stream).toEqual({ value: true, default: false, isDefault: false });
    await rpc.user.settings.set({ settings: { stream: null } });
    expect((await rpc.user.settings.get()).settings.stream?.isDefault).toBe(true);
    await expect(rpc.user.settings.set({ settings: { stream: "loud" } })).rejects.toThrow(/stream/);
  });

  it("a server masks secrets of a client everywhere from then on", async () => {
    expect(await stage.client.rpc.secrets.addFilterValues({ values: ["correct-horse-battery"] })).toEqual({ ok: true });
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(says("It is correct-horse-battery."));
    const answer = await session.sendAndWait("What is it?");
    expect(answer?.data.content).not.toContain("correct-horse-battery");
  });

  it("a server without a session finds, measures, closes and deletes sessions", async () => {
    const { rpc } = stage.client;
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    const { sessionId } = session;
    stage.play(says("Hello."));
    await session.sendAndWait("Hi");
    await rpc.sessions.save({ sessionId });
    expect(await rpc.sessions.checkInUse({ sessionIds: [sessionId, "nobody"] })).toEqual({ inUse: [sessionId] });
    await rpc.sessions.close({ sessionId });
    expect(await rpc.sessions.checkInUse({ sessionIds: [sessionId] })).toEqual({ inUse: [] });
    expect(await rpc.sessions.findByPrefix({ prefix: sessionId.slice(0, 13) })).toEqual({ sessionId });
    expect(await rpc.sessions.findByPrefix({ prefix: "zzzz" })).toEqual({});
    const cwd = stage.folder.at("work");
    const listed = (await rpc.sessions.list({ filter: { cwd } })).sessions.map((one) => one.sessionId);
    expect(listed).toContain(sessionId);
    expect(await rpc.sessions.getLastForContext({ context: { cwd: "/nowhere" } })).toEqual({});
    expect((await rpc.sessions.getSizes()).sizes[sessionId]).toBeGreaterThan(100);
    const pruned = await rpc.sessions.pruneOld({ olderThanDays: 0, dryRun: true });
    expect(pruned).toMatchObject({ deleted: [], dryRun: true, freedBytes: 0 });
    expect(pruned.candidates).toContain(sessionId);
    const { freedBytes } = await rpc.sessions.bulkDelete({ sessionIds: [sessionId, "nobody"] });
    expect(freedBytes[sessionId]).toBeGreaterThan(100);
    expect(freedBytes.nobody).toBe(0);
    expect((await rpc.sessions.list({})).sessions.map((one) => one.sessionId)).not.toContain(sessionId);
  });

  it("a server reports which methods it does not support", async () => {
    const { rpc } = stage.client;
    expect(await rpc.sessions.getRemoteControlStatus()).toEqual({ status: { state: "off" } });
    expect(await rpc.sessions.stopRemoteControl({})).toEqual({ status: { state: "off" }, stopped: false });
    await expect(rpc.sessions.connect({ sessionId: "far-away" })).rejects.toThrow(/no remote session far-away/);
    await expect(rpc.agentRegistry.spawn({ cwd: "/" })).rejects.toThrow(/agentRegistry.spawn is not enabled/);
  });
});
