import { mkdir, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { approveAll } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import { says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
    await mkdir(stage.folder.at("skills/bake"), { recursive: true });
    await writeFile(stage.folder.at("skills/bake/SKILL.md"), skill("bake"));
  },
  () => stage[Symbol.asyncDispose](),
);

const skill = (name: string): string => `---\nname: ${name}\ndescription: How to ${name}\n---\nSlowly.\n`;

const shownLast = (): string => JSON.stringify(stage.model.requests.at(-1)?.body);
const offeredLast = (): string[] => (stage.model.requests.at(-1)?.request?.tools ?? []).map(({ name }) => name);

describe("a session with skills and MCP servers", () => {
  it("a session switches skills on and off, and finds new ones", async () => {
    const session = await stage.client.createSession({
      onPermissionRequest: approveAll,
      skillDirectories: [stage.folder.at("skills")],
      disabledSkills: ["bake"],
    });
    const states = async () =>
      (await session.rpc.skills.list()).skills.map(({ name, enabled }) => `${name} ${enabled ? "on" : "off"}`);
    expect(await states()).toEqual(["bake off"]);
    stage.play(says("Nothing."));
    await session.sendAndWait("What can you do?");
    expect(shownLast().includes("How to bake")).toBe(false);
    await session.rpc.skills.enable({ name: "bake" });
    stage.play(says("I can bake."));
    await session.sendAndWait("And now?");
    expect(shownLast().includes("How to bake")).toBe(true);
    await mkdir(stage.folder.at("skills/brew"), { recursive: true });
    await writeFile(stage.folder.at("skills/brew/SKILL.md"), skill("brew"));
    await session.rpc.skills.reload();
    expect(await states()).toEqual(["bake on", "brew on"]);
    await session.rpc.skills.disable({ name: "bake" });
    expect(await states()).toEqual(["bake off", "brew on"]);
    await expect(session.rpc.skills.enable({ name: "fly" })).rejects.toThrow(/no skill fly/);
    expect(await session.rpc.skills.getInvoked()).toEqual({ skills: [] });
  });

  it("a session connects, lists, stops and removes MCP servers", async () => {
    const everything = resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    const events: object[] = [];
    const session = await stage.client.createSession({
      onPermissionRequest: approveAll,
      mcpServers: { every: { type: "stdio", command: process.execPath, args: [everything, "stdio"], tools: ["echo"] } },
      onEvent: ({ type, data }) => void (/mcp[._]/.test(type) && events.push({ type, data })),
    });
    const status = async () =>
      (await session.rpc.mcp.list()).servers.map((server) => `${server.name} ${server.status}`);
    await expect.poll(status).toEqual(["every connected"]);
    // It is connected a moment before its tools are known, and that before all that is said of it is told.
    await expect.poll(() => JSON.stringify(events)).toContain("session.mcp_servers_loaded");
    expect(await session.rpc.mcp.isServerRunning({ serverName: "every" })).toEqual({ running: true });
    const { tools } = await session.rpc.mcp.listTools({ serverName: "every" });
    expect(tools.map(({ name }) => name)).toContain("echo");
    const login = (serverName: string) => session.rpc.mcp.oauth.login({ serverName });
    await expect(login("every")).rejects.toThrow(/'every' is not a remote server/);
    await expect(login("other")).rejects.toThrow(/'other' is not configured/);
    const { apps } = session.rpc.mcp;
    expect(await apps.diagnose({ serverName: "every" })).toMatchObject({
      capability: { sessionHasMcpApps: false },
      server: { connected: true, toolCount: tools.length, toolsWithUiMeta: 0 },
    });
    expect(await apps.getHostContext()).toEqual({ context: {} });
    await apps.setHostContext({ context: { theme: "dark", locale: "en-GB" } });
    expect(await apps.getHostContext()).toEqual({ context: { theme: "dark", locale: "en-GB" } });
    await expect(apps.setHostContext({ context: { locale: "x".repeat(70_000) } })).rejects.toThrow(/at most/);
    await expect(apps.listTools({ serverName: "every", originServerName: "every" })).rejects.toThrow(/mcp-apps/);
    await session.rpc.mcp.stopServer({ serverName: "every" });
    expect(await session.rpc.mcp.isServerRunning({ serverName: "every" })).toEqual({ running: false });
    expect(await status()).toEqual(["every disabled"]);
    const changed = { type: "session.mcp_server_status_changed" };
    await expect
      .poll(() => events)
      .toEqual([
        { ...changed, data: { serverName: "every", status: "pending" } },
        { ...changed, data: { serverName: "every", status: "connected" } },
        { type: "mcp.tools.list_changed", data: { serverName: "every" } },
        {
          type: "session.mcp_servers_loaded",
          data: { servers: [{ name: "every", status: "connected", transport: "stdio" }] },
        },
        { ...changed, data: { serverName: "every", status: "disabled" } },
      ]);
    await expect(session.rpc.mcp.listTools({ serverName: "every" })).rejects.toThrow(/not connected/);
    stage.play(says("No server."));
    await session.sendAndWait("Which tools?");
    expect(offeredLast()).not.toContain("every-echo");
    await session.rpc.mcp.enable({ serverName: "every" });
    stage.play(says("A server."));
    await session.sendAndWait("And now?");
    expect(offeredLast()).toContain("every-echo");
    const { tools: offered } = await session.rpc.tools.getCurrentMetadata();
    expect(offered?.map(({ name }) => name)).toContain("every-echo");
    await expect(session.rpc.mcp.disable({ serverName: "other" })).rejects.toThrow(/not configured/);
    await session.disconnect();
    // Its tools are remembered, and whoever asks for the list wants it connected all the same.
    const next = await stage.client.createSession({
      onPermissionRequest: approveAll,
      mcpServers: { every: { type: "stdio", command: process.execPath, args: [everything, "stdio"], tools: ["echo"] } },
    });
    const again = async () => (await next.rpc.mcp.list()).servers.map((server) => `${server.name} ${server.status}`);
    await expect.poll(again).toEqual(["every connected"]);
  });

  it("a session reports that it has no skills and servers", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    expect(await session.rpc.mcp.list()).toMatchObject({ servers: [] });
    await expect(session.rpc.mcp.enable({ serverName: "x" })).rejects.toThrow(/No MCP host initialized/);
    await expect(session.rpc.mcp.oauth.login({ serverName: "x" })).rejects.toThrow(/MCP host is not available/);
    expect(await session.rpc.tools.getCurrentMetadata()).toEqual({ tools: null });
    expect((await stage.client.rpc.tools.list({})).tools.map(({ name }) => name)).toContain("view");
    expect(await session.rpc.instructions.getSources()).toEqual({ sources: [] });
  });
});
