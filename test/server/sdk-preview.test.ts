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
import { says, stalls } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

/** Speaks the wire of SDK 1.0.15-preview.4, which is not installed: its names and shapes are written out here. */
const PATIENT = { timeout: 60_000 };

let stage: ServerStage;
let client: CopilotClient;
beforeAll(async () => {
  stage = await serverStage();
  client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env: stage.environment(), args: [] }),
    baseDirectory: stage.folder.at("home"),
    workingDirectory: stage.folder.at("work"),
  });
  await client.start();
});
afterAll(async () => {
  await client.stop().catch(() => client.forceStop());
  await stage[Symbol.asyncDispose]();
});
afterEach(() => stage.play());

const opened = (more: Parameters<CopilotClient["createSession"]>[0] = {}): Promise<CopilotSession> =>
  client.createSession({ onPermissionRequest: approveAll, ...more });

type Sender = { sendRequest(method: string, params: object): Promise<Record<string, unknown>> };
const asking =
  (session: CopilotSession) =>
  (method: string, params: object = {}): Promise<Record<string, unknown>> =>
    (Reflect.get(session, "connection") as Sender).sendRequest(method, { sessionId: session.sessionId, ...params });

describe("methods of SDK 1.0.15", () => {
  it("methods of SDK 1.0.15 refuse catalogs and installations in the form of the contract", async () => {
    const ask = asking(await opened());
    const contract = { protocolVersion: 1, requiredCapabilities: ["mcp-install"] };
    const refused = {
      kind: "negotiation-refused",
      reason: "unsupported-capability",
      runtimeProtocolVersion: 0,
      minimumSupportedProtocolVersion: 0,
      supportedCapabilities: [],
      unsupportedCapabilities: ["mcp-install"],
      message: expect.stringContaining("installs no MCP servers"),
    };
    for (const method of [
      "mcp.prepareInstall",
      "mcp.installations.list",
      "skills.planInstall",
      "skills.applyInstall",
    ]) {
      expect(await ask(method, { contract })).toEqual(refused);
    }
    expect(await ask("catalog.select", { contract, selectionRef: "x", outcome: "declined" })).toMatchObject({
      kind: "unavailable",
      reason: "selection-unavailable",
    });
  });

  it("methods of SDK 1.0.15 list no connectors and refuse to connect one", async () => {
    const ask = asking(await opened());
    const status = { apiVersion: 1, availability: "unavailable", runtimeServers: [], pendingConnections: 0 };
    expect(await ask("session.connectors.getStatus")).toEqual(status);
    expect(await ask("session.connectors.getCapabilities")).toMatchObject({ availability: "unavailable" });
    expect(await ask("session.connectors.list", { accountId: "a" })).toMatchObject({ connectors: [] });
    await expect(ask("session.connectors.connect", { connectorId: "c" })).rejects.toThrow(/not supported/);
  });

  it("methods of SDK 1.0.15 answer for policies, diagnostics, sign-ins and the sandbox of this machine", async () => {
    const ask = asking(await opened());
    expect(await ask("session.managedSettings.get")).toMatchObject({ source: "none", managedKeys: [] });
    expect(await ask("session.diagnostics.read", { sources: ["mcp"] })).toMatchObject({ entries: [], hasMore: false });
    await expect(ask("session.diagnostics.configure", { sources: {} })).rejects.toThrow(/captures no diagnostics/);
    expect(await ask("session.mcp.oauth.cancelLogin", { loginId: "l" })).toEqual({ cancelled: false });
    const { supported } = await ask("sandbox.getHostSupport");
    expect(typeof supported).toBe("boolean");
    const accounts = await ask("session.accounts.enumerate", { query: { kind: "accounts" } });
    expect(accounts).toEqual({ kind: "accounts", items: [] });
    const status = await ask("session.accounts.get", { query: { kind: "status" } });
    expect(status).toMatchObject({ kind: "status", status: { isAuthenticated: false, accountCount: 0 } });
    await expect(ask("session.accounts.login.begin", { kind: "githubDotCom" })).rejects.toThrow(/not supported/);
  });

  it("methods of SDK 1.0.15 load instructions again, for the next answer", async () => {
    const path = stage.folder.at("work/AGENTS.md");
    await writeFile(path, "Answer in verse.\n");
    const session = await opened();
    stage.play(says("A rose."));
    await session.sendAndWait("Hi.");
    await writeFile(path, "Answer in prose.\n");
    await asking(session)("session.instructions.reload");
    stage.play(says("A flower."));
    await session.sendAndWait("Again?");
    const { messages } = (stage.model.requests.at(-1)?.body ?? {}) as { messages: { content: string }[] };
    expect(messages[0]?.content).toContain("Answer in prose.");
    expect(messages[0]?.content).not.toContain("Answer in verse.");
    expect(JSON.stringify(messages)).toContain("A rose.");
    expect(await asking(session)("session.customizations.reload")).toEqual({ warnings: [], errors: [] });
    await session.disconnect();
  });

  it("methods of SDK 1.0.15 manage plugins by paths relative to the session's folder", async () => {
    const plugin = { name: "greeter", version: "1.0.0" };
    const path = stage.folder.at("work/market/greeter/plugin.json");
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, JSON.stringify(plugin));
    const ask = asking(await opened());
    expect(await ask("session.plugins.install", { source: "./market/greeter" })).toMatchObject({ plugin });
    expect((await client.rpc.plugins.list()).plugins).toEqual([expect.objectContaining({ name: "greeter" })]);
    await ask("session.plugins.disable", { names: ["greeter"] });
    expect((await client.rpc.plugins.list()).plugins).toEqual([expect.objectContaining({ enabled: false })]);
    const { directSourceId } = (await client.rpc.plugins.list()).plugins[0] as { directSourceId?: string };
    await ask("session.plugins.uninstall", { name: "greeter", directSourceId });
    expect(await ask("session.plugins.marketplaces.list")).toEqual({ marketplaces: expect.any(Array) });
  });

  it("methods of SDK 1.0.15 replace the providers of a session, and deselect a model that is withdrawn", async () => {
    const { baseUrl } = stage.model;
    const session = await opened({
      providers: [{ name: "mine", type: "openai", baseUrl }],
      models: [{ id: "one", provider: "mine" }],
      model: "mine/one",
    });
    const heard: SessionEvent[] = [];
    session.on((event: SessionEvent) => void heard.push(event));
    const ask = asking(session);
    const providers = [{ name: "other", type: "openai", baseUrl }];
    const synced = await ask("session.provider.sync", { providers, models: [{ id: "two", provider: "other" }] });
    expect(synced).toMatchObject({ selectionIds: ["other/two"], modelDeselected: true });
    await expect.poll(() => heard.map(({ type }) => type as string), PATIENT).toContain("session.model_deselected");
    stage.play(says("Default."));
    expect((await session.sendAndWait("Hi."))?.data.content).toBe("Default.");
    await session.disconnect();
  });
});

describe("messages that no agent has read", () => {
  it("unread messages are withdrawn while their text is unchanged, and steering can be added to them", async () => {
    const session = await opened();
    const ask = asking(session);
    stage.play(stalls(), says("Read."));
    const running = await session.send("Work.");
    await expect.poll(() => stage.model.requests.length, PATIENT).toBeGreaterThan(0);
    const queued = await session.send({ prompt: "Later.", mode: "enqueue" });
    const steering = await session.send({ prompt: "Also this.", mode: "immediate" });
    const withdraw = (messageId: string, expectedPrompt: string) =>
      ask("session.queue.withdrawMessage", { messageId, expectedPrompt });
    expect(await withdraw(queued, "Other.")).toEqual({ removed: false, interrupted: false });
    expect(await withdraw(queued, "Later.")).toEqual({ removed: true, interrupted: false });
    expect(await withdraw(running, "Work.")).toEqual({ removed: false, interrupted: false });
    const append = (expectedPrompt: string, prompt: string) =>
      ask("session.queue.appendSteering", {
        ...{ messageId: steering, expectedPrompt, agentMode: "interactive", prompt, displayPrompt: prompt },
        attachments: [],
      });
    expect(await append("Something else.", "And that.")).toEqual({ updated: false });
    expect(await append("Also this.", "And that.")).toEqual({ updated: true });
    await session.abort();
    await expect.poll(() => JSON.stringify(stage.model.requests.at(-1)?.body), PATIENT).toContain("And that.");
    const said = async () =>
      (await session.getEvents()).flatMap((event) => (event.type === "user.message" ? [event.data.content] : []));
    await expect.poll(said, PATIENT).toEqual(["Work.", "Also this.\n\nAnd that."]);
    await session.disconnect();
  });
});
