import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import type { SessionMcpPort } from "../../session/session-mcp-port.ts";
import type { McpServerState } from "../../tools/mcp/connection.ts";
import type { McpServerPort } from "../../tools/mcp/connections.ts";
import type { McpScope, McpServerConfig } from "../../tools/mcp/server.ts";
import { ToolError } from "../../tools/tool-error.ts";
import type { SessionMcp } from "./session-mcp.ts";

/** Returns the session's MCP servers for surfaces. Errors are worded for users, not for a model. */
export function sessionMcpPort(mcp: SessionMcp, apps: SessionMcpPort["apps"]): SessionMcpPort {
  return {
    apps,
    get servers() {
      return mcp.servers.map(mcpServerEntry);
    },
    opened: () => mcp.opened(),
    ready: (signal) => mcp.ready(signal),
    setEnabled: (name, enabled) => mcp.setEnabled(name, enabled),
    askAgain: (serverName) => mcp.askAgain(serverName),
  };
}

export type ServerSummary = EventData<"session.mcp_servers_loaded">["servers"][number];

/** Sources of discovered servers. Servers of a program have none. */
const SOURCES: Readonly<Partial<Record<McpScope, ServerSummary["source"]>>> = {
  plugin: "plugin",
  project: "workspace",
  builtin: "builtin",
  user: "user",
  flag: "user",
};

export function summaryOf(
  { name, scope, pluginName, transport }: McpServerConfig,
  { status, error }: McpServerState,
  plugins: readonly { readonly name: string; readonly version?: string }[],
): ServerSummary {
  const source = SOURCES[scope];
  const pluginVersion = plugins.find((plugin) => plugin.name === pluginName)?.version;
  return {
    name,
    status,
    transport: transport.type,
    ...defined({ source, pluginName, pluginVersion, error }),
  };
}

function mcpServerEntry(server: McpServerPort): SessionMcpPort["servers"][number] {
  return {
    config: server.config,
    state: () => server.state(),
    definitions: (signal) => worded(server.definitions(signal)),
    listResources: (signal) => worded(server.listResources(signal)),
    listTemplates: (signal) => worded(server.listTemplates(signal)),
    probe: (signal) => server.probe(signal),
    readResource: (uri, signal) => worded(server.readResource(uri, signal)),
    reconnect: () => server.reconnect(),
  };
}

/** Turns tool errors into `TroupeError`, for calls that a model did not make. */
export async function worded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw cause instanceof ToolError ? new TroupeError("failed", cause.message, { cause }) : cause;
  }
}
