import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { approveAll, CopilotClient, RuntimeConnection, type SessionConfig } from "@github/copilot-sdk";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { github } from "../support/github.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const ALICE = "token-of-alice-0123456789";
const CAROL = "token-of-carol-0123456789";
const NAME = "github-mcp-server";

interface Seen {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

let stage: ServerStage;
let people: Awaited<ReturnType<typeof github>>;
let api: Awaited<ReturnType<typeof apiServer>>;
let client: CopilotClient;
beforeAll(async () => {
  stage = await serverStage();
  people = await github({ [ALICE]: { login: "alice" }, [CAROL]: { login: "carol", is_mcp_enabled: false } });
  api = await apiServer();
  client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js") }),
    env: { ...stage.environment(), COPILOT_API_URL: api.url, COPILOT_DEBUG_GITHUB_API_URL: people.url },
    ...{ baseDirectory: stage.folder.at("home"), workingDirectory: stage.folder.at("work"), gitHubToken: ALICE },
  });
});
afterAll(async () => {
  await client.stop();
  api.close();
  await people[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});

const open = (config: Partial<SessionConfig> = {}) =>
  client.createSession({ onPermissionRequest: approveAll, enableConfigDiscovery: true, ...config });

describe("the tools of GitHub, for a session with a GitHub identity", () => {
  it("GitHub tools are available with the first message, read only, and their output is data", async () => {
    api.seen.length = 0;
    const session = await open();
    await session.rpc.metadata.snapshot();
    expect(api.seen).toEqual([]);
    stage.play(calls([`${NAME}-get_me`, {}]), says("alice"));
    await session.sendAndWait("Who am I?");
    expect(new Set(api.seen.map(({ path }) => path))).toEqual(new Set(["/mcp/readonly"]));
    expect(api.seen[0]?.headers).toMatchObject({ authorization: `Bearer ${ALICE}` });
    expect(Object.keys(api.seen[0]?.headers ?? {}).filter((name) => name.startsWith("x-mcp"))).toEqual([]);
    const body = stage.model.requests.at(-1)?.body as { messages: { role: string; content: string }[] } | undefined;
    const result = body?.messages.findLast(({ role }) => role === "tool")?.content ?? "";
    expect(result).toContain("you are alice");
    expect(result).not.toMatch(/^you are alice/);
    expect((await session.rpc.mcp.list()).servers).toMatchObject([
      { name: NAME, status: "connected", source: "builtin" },
    ]);
    expect(await session.rpc.mcp.removeGitHub()).toEqual({ removed: true });
    expect(await session.rpc.mcp.removeGitHub()).toEqual({ removed: false });
    await session.disconnect();
  });

  it("a program can choose the GitHub tools", async () => {
    const wanted: [NonNullable<SessionConfig["githubMcpToolConfig"]>, Record<string, string>][] = [
      [
        { enableAllTools: true, additionalToolsets: ["actions"], enableInsidersMode: true },
        { "x-mcp-toolsets": "all", "x-mcp-insiders": "true" },
      ],
      [
        { additionalToolsets: ["actions"], additionalTools: ["get_me", "star"] },
        { "x-mcp-toolsets": "default,actions", "x-mcp-tools": "get_me,star" },
      ],
    ];
    for (const [githubMcpToolConfig, headers] of wanted) {
      api.seen.length = 0;
      const session = await open({ githubMcpToolConfig });
      await session.rpc.mcp.list();
      await expect.poll(() => api.seen[0]).toMatchObject({ path: "/mcp", headers });
      await session.disconnect();
    }
  });

  it("GitHub tools are not requested where they are disabled, not allowed, or not needed", async () => {
    api.seen.length = 0;
    const none = async (config: Partial<SessionConfig>) => {
      const session = await open(config);
      stage.play(says("hello"));
      await session.sendAndWait("hi");
      const { servers } = await session.rpc.mcp.list();
      await session.disconnect();
      return servers;
    };
    expect(await none({ disabledMcpServers: [NAME] })).toMatchObject([{ name: NAME, status: "disabled" }]);
    expect(await none({ gitHubToken: CAROL })).toEqual([]);
    expect(await none({ enableConfigDiscovery: false })).toEqual([]);
    expect(api.seen).toEqual([]);
  });
});

/** Models and an MCP server behind one address, as GitHub has them. */
async function apiServer() {
  const seen: Seen[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const path = request.url ?? "";
    if (path === "/models") return void response.end(JSON.stringify({ data: [{ id: "other", name: "Other" }] }));
    if (!path.startsWith("/mcp") || request.method !== "POST") return void response.writeHead(405).end();
    seen.push({ path, headers: request.headers });
    const server = new McpServer({ name: "github", version: "1" });
    server.registerTool("get_me", { description: "Who am I?" }, () => ({
      content: [{ type: "text", text: "you are alice" }],
    }));
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport as unknown as SSEServerTransport);
    await transport.handleRequest(request, response, JSON.parse(body));
  };
  const listener = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    seen,
    close: () => {
      listener.closeAllConnections();
      listener.close();
    },
  };
}
