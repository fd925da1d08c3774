import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import {
  approveAll,
  CopilotClient,
  type CopilotSession,
  RuntimeConnection,
  type SessionEvent,
} from "copilot-sdk-1.0.14";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { calls, says, stalls } from "../../src/testing/index.ts";
import { mcpFixture } from "./mcp-fixture.ts";
import { protectedServer } from "./protected-server.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const PATIENT = { timeout: 60_000 };

let stage: ServerStage;
let client: CopilotClient;
beforeAll(async () => {
  stage = await serverStage();
  await writeFile(stage.folder.at("fixture.cjs"), mcpFixture);
  client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env: stage.environment(), args: [] }),
    baseDirectory: stage.folder.at("home"),
    workingDirectory: stage.folder.at("work"),
  });
});
afterAll(async () => {
  await client.stop().catch(() => client.forceStop());
  await stage[Symbol.asyncDispose]();
});
afterEach(() => stage.play());

type Config = Parameters<CopilotClient["createSession"]>[0];
const fixture = () => ({
  fixture: { type: "stdio" as const, command: process.execPath, args: [stage.folder.at("fixture.cjs")], tools: ["*"] },
});

async function opened(more: Config = {}): Promise<{ session: CopilotSession; heard: SessionEvent[] }> {
  const heard: SessionEvent[] = [];
  const onEvent = (event: SessionEvent): void => void heard.push(event);
  return { heard, session: await client.createSession({ onPermissionRequest: approveAll, onEvent, ...more }) };
}
const dataOf = (heard: readonly SessionEvent[], type: string): unknown[] =>
  heard.flatMap((event) => (event.type === type ? [event.data] : []));
const connected = async (session: CopilotSession): Promise<void> => {
  const status = async () => (await session.rpc.mcp.list()).servers.map((server) => server.status);
  await expect.poll(status, PATIENT).toEqual(["connected"]);
};

describe("events that follow from others", () => {
  it("the first events state that no policy of an organisation applies", async () => {
    const { session, heard } = await opened();
    await expect
      .poll(() => dataOf(heard, "session.managed_settings_resolved"), PATIENT)
      .toEqual([expect.objectContaining({ source: "none", managedKeys: [], failClosed: false })]);
    expect((await session.getEvents()).map(({ type }) => type)).toEqual(["session.start"]);
    await session.disconnect();
  });

  it("events name the model of an agent, and whether it can be written to", async () => {
    const { session, heard } = await opened();
    const task = { name: "look", agent_type: "explore", description: "look", prompt: "Look.", mode: "sync" };
    stage.play(calls(["task", task]), says("Seen."), says("Done."));
    await session.sendAndWait("Have it looked at.");
    const started = heard.find(({ type }) => type === "subagent.started");
    const configured = heard.find(({ type }) => type === "subagent.configured");
    expect(configured).toMatchObject({
      agentId: started?.agentId,
      data: { model: expect.stringContaining("faux-model"), multiTurn: true },
    });
    await session.disconnect();
  });

  it("events bring the bytes of an image once, after the event that names it", async () => {
    const { session, heard } = await opened({ mcpServers: fixture() });
    stage.play(calls(["fixture-picture", {}]), says("A dot."), calls(["fixture-picture", {}]), says("The same."));
    await session.sendAndWait("Draw.");
    await session.sendAndWait("Again.");
    const named = heard.flatMap((event) =>
      event.type === "tool.execution_complete" ? (event.data.result?.binaryResultsForLlm ?? []) : [],
    ) as { assetId?: string }[];
    expect(named).toHaveLength(2);
    await expect
      .poll(() => dataOf(heard, "session.binary_asset"), PATIENT)
      .toEqual([
        {
          assetId: named[0]?.assetId,
          type: "image",
          mimeType: "image/png",
          byteLength: 70,
          data: expect.stringMatching(/^iVBOR/),
        },
      ]);
    await session.disconnect();
  });

  it("events report an MCP server that ended, and one that is no longer configured", async () => {
    const { session, heard } = await opened({ mcpServers: fixture() });
    await connected(session);
    stage.play(calls(["fixture-leave", {}]), says("It left."));
    await session.sendAndWait("Leave.");
    await expect
      .poll(() => dataOf(heard, "session.mcp_server_needs_reconnect"), PATIENT)
      .toEqual([{ serverName: "fixture" }]);
    await client.resumeSession(session.sessionId, {
      onPermissionRequest: approveAll,
      mcpServers: {},
      onEvent: (event) => void heard.push(event),
    });
    await expect.poll(() => dataOf(heard, "session.mcp_server_removed"), PATIENT).toEqual([{ serverName: "fixture" }]);
    await session.disconnect();
  });

  it("events follow a side question from its start to its end", async () => {
    const { session, heard } = await opened();
    stage.play(says("Hello."), says("Momo."));
    await session.sendAndWait("Hi.");
    await session.rpc.ui.ephemeralQuery({ question: "And?" });
    await expect
      .poll(() => dataOf(heard, "ui.ephemeral_query"), PATIENT)
      .toEqual([
        { requestId: expect.any(String), phase: "started" },
        { requestId: expect.any(String), phase: "completed", answer: "Momo." },
      ]);
    await session.disconnect();
  });

  it("events name the tools that a search found, which stay offered after a resume", async () => {
    const config = { mcpServers: fixture(), toolSearch: { deferThreshold: 1 } };
    const { session, heard } = await opened(config);
    await connected(session);
    stage.play(calls(["tool_search_tool_regex", { pattern: "picture" }]), says("Found."));
    await session.sendAndWait("Find it.");
    await expect
      .poll(() => dataOf(heard, "tool_search.activated"), PATIENT)
      .toEqual([{ strategy: "regex", toolNames: ["fixture-picture"] }]);
    await session.disconnect();
    const again = await client.resumeSession(session.sessionId, { onPermissionRequest: approveAll, ...config });
    await connected(again);
    stage.play(says("Yes."));
    await again.sendAndWait("Is it there?");
    const { tools } = (stage.model.requests.at(-1)?.body ?? {}) as { tools: { function: { name: string } }[] };
    const names = tools.map((tool) => tool.function.name);
    expect(names).toContain("fixture-picture");
    expect(names).not.toContain("fixture-leave");
    await again.disconnect();
  });

  it("tools are offered without a search where their server or program requests it", async () => {
    const tool = (name: string, defer: "auto" | "never") => ({ name, description: name, handler: () => "", defer });
    const { session } = await opened({
      mcpServers: Object.fromEntries(
        Object.entries(fixture()).map(([name, server]) => [name, { ...server, deferTools: "never" } as never]),
      ),
      tools: [tool("rare", "auto"), tool("usual", "never")],
      toolSearch: { deferThreshold: 1 },
    });
    await connected(session);
    stage.play(says("Yes."));
    await session.sendAndWait("Are they there?");
    const { tools } = (stage.model.requests.at(-1)?.body ?? {}) as { tools: { function: { name: string } }[] };
    const names = tools.map(({ function: { name } }) => name);
    expect(names).toEqual(expect.arrayContaining(["fixture-picture", "usual"]));
    expect(names).not.toContain("rare");
    await session.disconnect();
  });
});

describe("an extension", () => {
  it("an extension sends attachments to the clients that write the next message", async () => {
    const path = stage.folder.at("home/extensions/pusher/extension.mjs");
    await mkdir(dirname(path), { recursive: true });
    await writeFile(
      path,
      `import { joinSession } from "@github/copilot-sdk/extension";
      const session = await joinSession();
      const attachments = [{ type: "file", path: "/notes.md", displayName: "notes.md" }];
      await session.rpc.extensions.sendAttachmentsToMessage({ attachments });`,
    );
    const extensionSdkPath = resolve("node_modules/copilot-sdk-1.0.14/dist");
    const { session, heard } = await opened({ requestExtensions: true, extensionSdkPath });
    await expect
      .poll(() => dataOf(heard, "session.extensions.attachments_pushed"), PATIENT)
      .toEqual([{ attachments: [{ type: "file", path: "/notes.md", displayName: "notes.md" }] }]);
    const attachments = [{ type: "file" as const, path: "/a", displayName: "a" }];
    await expect(session.rpc.extensions.sendAttachmentsToMessage({ attachments })).rejects.toThrow(/Only an extension/);
    await session.disconnect();
  });
});

describe("MCP servers of a session", () => {
  it("MCP servers of a session are restarted, started and stopped, and their resources read", async () => {
    const { session } = await opened({ mcpServers: fixture() });
    await connected(session);
    const { mcp } = session.rpc;
    const serverName = "fixture";
    await mcp.restartServer({ serverName });
    expect(await mcp.isServerRunning({ serverName })).toEqual({ running: true });
    await mcp.stopServer({ serverName });
    expect(await mcp.isServerRunning({ serverName })).toEqual({ running: false });
    await mcp.startServer({ serverName });
    expect(await mcp.isServerRunning({ serverName })).toEqual({ running: true });
    expect(await mcp.resources.list({ serverName })).toMatchObject({ resources: [{ uri: "note://1", name: "first" }] });
    expect(await mcp.resources.read({ serverName, uri: "note://1" })).toEqual({
      contents: [{ uri: "note://1", text: "A note." }],
    });
    expect(await mcp.moveLoadingToBackground()).toEqual({ movedToBackground: false });
    expect(await mcp.oauth.respond({ requestId: "none" })).toEqual({ success: false });
    await mcp.oauth.authenticationStateChanged({ serverName });
    await session.disconnect();
  });

  it("MCP servers of a session list all pages of their resource templates", async () => {
    const { session } = await opened({ mcpServers: fixture() });
    await connected(session);
    expect(await session.rpc.mcp.resources.listTemplates({ serverName: "fixture" })).toEqual({
      resourceTemplates: [
        { uriTemplate: "note://{id}", name: "note", description: "One note." },
        { uriTemplate: "log://{day}", name: "log", description: "", mimeType: "text/plain" },
      ],
    });
    await session.disconnect();
  });

  it("MCP servers of a session have sampling requests run on the session's model, and cancelled", async () => {
    const { session } = await opened({ mcpServers: fixture() });
    await connected(session);
    const request = { messages: [{ role: "user", content: { type: "text", text: "Hi?" } }], maxTokens: 10 };
    const sample = (requestId: string, given: object = request) =>
      session.rpc.mcp.executeSampling({
        ...{ requestId, serverName: "fixture", mcpRequestId: 1 },
        request: given as typeof request,
      });
    stage.play(says("Hello."));
    expect(await sample("one")).toEqual({
      action: "success",
      result: {
        model: expect.stringContaining("faux-model"),
        role: "assistant",
        content: { type: "text", text: "Hello." },
        stopReason: "endTurn",
      },
    });
    expect(await sample("two", { maxTokens: 1 })).toMatchObject({ action: "failure", error: /no messages/ });
    const before = stage.model.requests.length;
    stage.play(stalls());
    const waiting = sample("three");
    await expect.poll(() => stage.model.requests.length, PATIENT).toBe(before + 1);
    const { mcp } = session.rpc;
    expect(await mcp.cancelSamplingExecution({ requestId: "three" })).toEqual({ cancelled: true });
    expect(await waiting).toEqual({ action: "cancelled" });
    expect(await mcp.cancelSamplingExecution({ requestId: "three" })).toEqual({ cancelled: false });
    await session.disconnect();
  });

  it("MCP servers of a session are probed for a sign-in with one request, without asking for a token", async () => {
    const open = await protectedServer();
    const asked: string[] = [];
    const { session } = await opened({
      mcpServers: { ...fixture(), safe: { type: "http", url: open.url, tools: ["*"] } },
      onMcpAuthRequest: async ({ reason }) => {
        asked.push(reason);
        return { kind: "token", accessToken: "good" };
      },
    });
    const { oauth } = session.rpc.mcp;
    const probed = await oauth.probe({ serverName: "safe" });
    expect(probed).toMatchObject({
      status: "needs-auth",
      reason: "initial",
      httpResponse: { statusCode: 401 },
      wwwAuthenticateParams: { error: "invalid_token", resourceMetadataUrl: expect.stringContaining("well-known") },
    });
    expect(asked).toEqual([]);
    expect(open.seen).toEqual([""]);
    open.good.set("good", []);
    await oauth.login({ serverName: "safe" });
    expect(await oauth.probe({ serverName: "safe" })).toMatchObject({
      status: "authenticated",
      httpResponse: { statusCode: 200 },
    });
    open.good.clear();
    expect(await oauth.probe({ serverName: "safe" })).toMatchObject({ status: "needs-auth", reason: "refresh" });
    expect(asked).toEqual(["initial"]);
    await expect(oauth.probe({ serverName: "fixture" })).rejects.toThrow(/not a remote server/);
    await session.disconnect();
  });
});
