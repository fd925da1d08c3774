import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { approveAll, type CopilotSession, type SessionConfig } from "@github/copilot-sdk";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const PAGE = "<!doctype html><p>A shop</p>";

/** A server with a page, over loopback HTTP; what it was told of its client is kept. */
async function shopServer(): Promise<{ url: string; told: string[] }> {
  const told: string[] = [];
  const listener = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    told.push(body);
    if (request.method !== "POST") return void response.writeHead(405).end();
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await shop().connect(transport as unknown as SSEServerTransport);
    await transport.handleRequest(request, response, JSON.parse(body));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    listener.closeAllConnections();
    listener.close();
  });
  return { url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`, told };
}

function shop(): McpServer {
  const server = new McpServer({ name: "shop", version: "1" });
  const answer = (text: string) => () => ({ content: [{ type: "text" as const, text }] });
  const ui = { resourceUri: "ui://shop/page" };
  server.registerTool("browse", { description: "Look", _meta: { ui } }, answer("goods"));
  server.registerTool("buy", { description: "Buy", _meta: { ui: { ...ui, visibility: ["app"] } } }, answer("bought"));
  server.registerTool("count", { description: "Count", _meta: { ui: { visibility: ["model"] } } }, answer("3"));
  const contents = [{ uri: ui.resourceUri, mimeType: "text/html;profile=mcp-app", text: PAGE }];
  server.registerResource("page", ui.resourceUri, {}, () => ({ contents }));
  return server;
}

async function open(url: string, more: Partial<SessionConfig> = {}): Promise<CopilotSession> {
  const session = await stage.client.createSession({
    onPermissionRequest: approveAll,
    mcpServers: { shop: { type: "http", url, tools: ["*"] } },
    ...more,
  });
  const status = async () => (await session.rpc.mcp.list()).servers.map((server) => server.status);
  await expect.poll(status).toEqual(["connected"]);
  return session;
}

const own = { serverName: "shop", originServerName: "shop" };

describe("apps of MCP servers", () => {
  it("MCP apps are available to a client that shows them: their page, their tools, and call events", async () => {
    const { url, told } = await shopServer();
    const events: object[] = [];
    const session = await open(url, {
      enableMcpApps: true,
      onEvent: ({ type, data }) => void (type === "mcp_app.tool_call_complete" && events.push(data)),
    });
    const { apps } = session.rpc.mcp;
    expect(session.capabilities.ui?.mcpApps).toBe(true);
    expect(told.some((body) => body.includes("io.modelcontextprotocol/ui"))).toBe(true);
    expect(await apps.diagnose({ serverName: "shop" })).toEqual({
      capability: { sessionHasMcpApps: true, featureFlagEnabled: true, advertised: true },
      server: { connected: true, toolCount: 3, toolsWithUiMeta: 2, sampleToolNames: ["browse", "buy"] },
    });
    expect((await apps.listTools(own)).tools).toMatchObject([
      { name: "browse", _meta: { ui: { resourceUri: "ui://shop/page" } } },
      { name: "buy", _meta: { ui: { visibility: ["app"] } } },
    ]);
    expect(await apps.callTool({ ...own, toolName: "buy", arguments: { what: "tea" } })).toMatchObject({
      content: [{ type: "text", text: "bought" }],
    });
    await expect
      .poll(() => events)
      .toMatchObject([
        {
          serverName: "shop",
          toolName: "buy",
          arguments: { what: "tea" },
          success: true,
          durationMs: expect.any(Number),
          result: { content: [{ type: "text", text: "bought" }] },
          toolMeta: { ui: { resourceUri: "ui://shop/page" } },
        },
      ]);
    const { contents } = await apps.readResource({ serverName: "shop", uri: "ui://shop/page" });
    expect(contents).toMatchObject([{ mimeType: "text/html;profile=mcp-app", text: PAGE }]);
    await expect(apps.readResource({ serverName: "shop", uri: "ui://shop/none" })).rejects.toThrow(/not found/);
    stage.play(says("Two tools."));
    await session.sendAndWait("Which tools?");
    const offered = (stage.model.requests.at(-1)?.request?.tools ?? []).map(({ name }) => name);
    expect(offered.filter((name) => name.startsWith("shop-"))).toEqual(["shop-browse", "shop-count"]);
    await session.disconnect();
  });

  it("MCP apps reach only tools of their own server that are meant for them, within the rules", async () => {
    const { url } = await shopServer();
    const session = await open(url, { enableMcpApps: true });
    const { apps } = session.rpc.mcp;
    const call = (toolName: string, more: object = {}) => apps.callTool({ ...own, toolName, ...more });
    await expect(call("buy", { originServerName: "other" })).rejects.toThrow(/only its own server/);
    await expect(call("count")).rejects.toThrow(/not for apps/);
    await expect(call("sell")).rejects.toThrow(/not one of its tools/);
    await expect(call("buy", { serverName: "none", originServerName: "none" })).rejects.toThrow(/not connected/);
    const denied = [{ kind: "mcp", argument: "shop/buy" }];
    await session.rpc.permissions.configure({ rules: { approved: [], denied } });
    await expect(call("buy")).rejects.toThrow(/The call is denied/);
    await session.disconnect();
  });

  const calledAt = (told: readonly string[]) => told.filter((body) => body.includes('"tools/call"'));

  it("MCP apps call tools within what hooks allow, as the model does", async () => {
    const { url, told } = await shopServer();
    const heard: object[] = [];
    const ends: object[] = [];
    const asked: string[] = [];
    let before: { permissionDecision?: "ask" | "deny"; permissionDecisionReason?: string; modifiedArgs?: object } = {};
    const session = await open(url, {
      enableMcpApps: true,
      onPermissionRequest: ({ kind }) => {
        asked.push(kind);
        return { kind: "reject" };
      },
      onEvent: ({ type, data }) => void (type === "mcp_app.tool_call_complete" && ends.push(data)),
      hooks: {
        onPreToolUse: ({ toolName, toolArgs, ...more }) => {
          heard.push({ toolName, toolArgs, ...more });
          return before;
        },
        onPostToolUse: ({ toolName, toolResult }) => {
          heard.push({ after: toolName, said: toolResult.textResultForLlm });
          return { modifiedResult: { ...toolResult, textResultForLlm: "bought, said the hook" } };
        },
      },
    });
    const buy = () => session.rpc.mcp.apps.callTool({ ...own, toolName: "buy", arguments: { what: "tea" } });
    before = { permissionDecision: "deny", permissionDecisionReason: "nothing is bought" };
    await expect(buy()).rejects.toThrow(/Denied by preToolUse hook: nothing is bought/);
    expect(heard).toMatchObject([{ toolName: "shop-buy", toolArgs: '{"what":"tea"}', source: "mcp_app" }]);
    before = { permissionDecision: "ask", permissionDecisionReason: "look at it" };
    await expect(buy()).rejects.toThrow(
      /A hook requires the approval of the user, and no user could be asked: look at it/,
    );
    expect(asked).toEqual(["hook"]);
    expect([calledAt(told), ends]).toEqual([[], []]);
    before = { modifiedArgs: { what: "coffee" } };
    const content = [{ type: "text", text: "bought, said the hook" }];
    expect(await buy()).toEqual({ content });
    expect(calledAt(told)).toEqual([expect.stringContaining('{"what":"coffee"}')]);
    expect(heard.at(-1)).toEqual({ after: "shop-buy", said: expect.stringContaining("bought") });
    await expect
      .poll(() => ends)
      .toMatchObject([{ arguments: { what: "coffee" }, success: true, result: { content } }]);
    expect(asked).toEqual(["hook"]);
    await session.disconnect();
  });

  it("MCP apps call nothing that a hook of permission requests denies", async () => {
    const { url, told } = await shopServer();
    const hooks = {
      permissionRequest: [{ matcher: "shop/buy", command: `echo '{"behavior":"deny","message":"no"}'` }],
    };
    await mkdir(stage.folder.at("home/hooks"), { recursive: true });
    await writeFile(stage.folder.at("home/hooks/shop.json"), JSON.stringify({ version: 1, hooks }));
    onTestFinished(() => rm(stage.folder.at("home/hooks"), { recursive: true }));
    const session = await open(url, { enableMcpApps: true });
    const call = (toolName: string) => session.rpc.mcp.apps.callTool({ ...own, toolName });
    await expect(call("buy")).rejects.toThrow(/Denied by permissionRequest hook: no/);
    expect(calledAt(told)).toEqual([]);
    expect(await call("browse")).toMatchObject({ content: [{ text: "goods" }] });
    await session.disconnect();
  });

  it("MCP apps are not available to a client that shows none", async () => {
    const { url, told } = await shopServer();
    const session = await open(url);
    const { apps } = session.rpc.mcp;
    expect(session.capabilities.ui?.mcpApps).toBe(false);
    expect(told.some((body) => body.includes("io.modelcontextprotocol/ui"))).toBe(false);
    await expect(apps.callTool({ ...own, toolName: "buy" })).rejects.toThrow(/mcp-apps/);
    await expect(apps.readResource({ serverName: "shop", uri: "ui://shop/page" })).rejects.toThrow(/mcp-apps/);
    await session.disconnect();
  });
});
