import { defined } from "../../lib/defined.ts";
import { mcpAnswerers } from "../../session/requests/mcp-answers.ts";
import type { McpServerConfig } from "../../tools/mcp/server.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import { sessionTokens } from "../setup/session-tokens.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { SessionMcp, type SessionMcpOptions } from "./session-mcp.ts";
import { type ServerSummary, summaryOf } from "./session-mcp-port.ts";

/** The MCP servers of a session, and how its agents open their own. None is started here. */
export interface SessionServers {
  readonly mcp: SessionMcp | undefined;
  open(
    configs: readonly McpServerConfig[],
    reservedNames: readonly string[],
    more?: Partial<Pick<SessionMcpOptions, "onLoaded" | "waitsForAll">>,
  ): SessionMcp;
}

export function sessionServers(
  setup: SessionSetup,
  parts: {
    workspace: Workspace;
    configs: readonly McpServerConfig[];
    roots: readonly string[];
    reservedNames: readonly string[];
  },
): SessionServers {
  const open = opener(setup, parts);
  if (parts.configs.length === 0) return { open, mcp: undefined };
  const mcp: SessionMcp = open(parts.configs, parts.reservedNames, {
    onLoaded: () => void setup.channel.emit("session.mcp_servers_loaded", { servers: summaries(mcp, parts.workspace) }),
  });
  return { open, mcp };
}

/** Returns all configured servers, including disabled ones. */
export function summaries(mcp: SessionMcp | undefined, { servers, plugins }: Workspace): ServerSummary[] {
  const used = (mcp?.servers ?? []).map((server) => summaryOf(server.config, server.state(), plugins));
  const unused = servers.disabled.map(({ config }) => summaryOf(config, { status: "disabled" }, plugins));
  return [...used, ...unused];
}

/** Returns whether the session's program shows apps of servers, and the feature is enabled. */
export const showsApps = ({ request }: SessionSetup, { flags }: Workspace): boolean =>
  request.client?.mcpApps === true && flags.has("MCP_APPS");

function opener(
  setup: SessionSetup,
  { workspace, roots }: { workspace: Workspace; roots: readonly string[] },
): SessionServers["open"] {
  const { stamp, shared, channel, log } = setup;
  const tokens = sessionTokens(setup);
  return (configs, reservedNames, more) =>
    new SessionMcp({
      configs,
      owner: log.sessionId,
      roots: () => rootsToTell(setup, roots),
      waitsForAll: setup.request.tools?.waitForServers ?? false,
      answerers: (serverName) => (channel.session ? mcpAnswerers(channel.session, serverName) : {}),
      stamp,
      reservedNames,
      tokens,
      apps: showsApps(setup, workspace),
      connections: () => shared.connections(),
      pins: () => shared.pins((message) => channel.notice(message)),
      onStatus: (serverName, status, error) =>
        void channel.emit("session.mcp_server_status_changed", {
          serverName,
          status,
          ...defined({ error }),
        }),
      onNotice: (message) => channel.warn("mcp", message),
      ...more,
      onChange: channel.toolsChanged,
      onListChanged: (serverName, what) => void channel.emit(`mcp.${what}.list_changed`, { serverName }),
    });
}

/** Returns the working directory and added folders, without the session's own folders. */
function rootsToTell({ context, files, records }: SessionSetup, allowed: readonly string[]): readonly string[] {
  // Without a limit (--allow-all-paths) the list is empty; the working directory is still the workspace.
  if (allowed.length === 0) return [context.cwd];
  return allowed.filter((folder) => folder !== files && folder !== records);
}
