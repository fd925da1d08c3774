import { fileURLToPath } from "node:url";
import type { McpUser } from "../../src/tools/mcp/connection.ts";
import { McpConnections, type McpConnectionsOptions, type McpServerPort } from "../../src/tools/mcp/connections.ts";
import type { McpServerConfig } from "../../src/tools/mcp/server.ts";
import { type McpToolsOptions, mcpTools } from "../../src/tools/mcp/tools.ts";
import type { Tool, ToolContext } from "../../src/tools/tool.ts";
import type { ToolResult } from "../../src/tools/tool-error.ts";

const serversFolder = fileURLToPath(new URL("./servers/", import.meta.url));
const everythingPath = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

type Overrides = Partial<Omit<McpServerConfig, "transport">>;

/** A server that is run with our own Node. */
export function stdioConfig(script: string, args: readonly string[] = [], overrides: Overrides = {}): McpServerConfig {
  const path = script === "everything" ? everythingPath : `${serversFolder}${script}`;
  return {
    name: script.replace(/\.mjs$/, ""),
    scope: "user",
    source: "test",
    transport: { type: "stdio", command: process.execPath, args: [path, ...args], environment: {} },
    tools: ["*"],
    timeoutMs: 60_000,
    ...overrides,
  };
}

export const scripted = (mode: string, overrides: Overrides & { argument?: string } = {}): McpServerConfig => {
  const { argument = "", ...rest } = overrides;
  return stdioConfig("scripted.mjs", [mode, argument], { name: mode, ...rest });
};

export function remoteConfig(
  url: string,
  overrides: Partial<McpServerConfig> & { type?: "http" | "sse" } = {},
): McpServerConfig {
  const { type = "http", ...rest } = overrides;
  return {
    name: "remote",
    scope: "user",
    source: "test",
    transport: { type, url, headers: {} },
    tools: ["*"],
    timeoutMs: 60_000,
    ...rest,
  };
}

export interface Stage extends AsyncDisposable {
  readonly connections: McpConnections;
  use(config: McpServerConfig, user?: McpUser): McpServerPort;
  close(): Promise<void>;
}

export function stage(options: Partial<McpConnectionsOptions> = {}): Stage {
  const connections = new McpConnections({ version: "0.0.0", cwd: process.cwd(), ...options });
  const close = (): Promise<void> => connections.close();
  return { connections, use: (config, user) => connections.use(config, user), close, [Symbol.asyncDispose]: close };
}

/** Of a call that nobody stops. */
export const never = (): AbortSignal => new AbortController().signal;

export async function toolsOf(server: McpServerPort, options: Partial<McpToolsOptions> = {}): Promise<Tool[]> {
  return mcpTools([{ server, definitions: await server.definitions(never()) }], { reservedNames: [], ...options });
}

export function run(
  tool: Tool | undefined,
  given: unknown = {},
  context: Partial<ToolContext> = {},
): Promise<ToolResult> {
  if (tool === undefined) throw new Error("There is no such tool.");
  return tool
    .bind(given)
    .run({ cwd: "/", roots: [], toolCallId: "call-1", signal: never(), progress: () => undefined, ...context });
}

/** Calls the first tool of the server. */
export async function callFirst(server: McpServerPort, given: unknown = { words: "hello" }): Promise<string> {
  const [tool] = await toolsOf(server);
  return (await run(tool, given)).content;
}
