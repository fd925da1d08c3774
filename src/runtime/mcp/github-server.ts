/**
 * GitHub's own MCP server, for sessions with a GitHub identity that request it. It is read-only unless the program
 * wants more. A configured server of the same name replaces it.
 */
import type { GithubToolsRequest } from "../session-request.ts";
import type { SessionSetup } from "../setup/session-setup.ts";

const GITHUB_SERVER = "github-mcp-server";

/** Returns a configuration entry; empty without an identity, or if the organisation allows no servers. */
export async function githubServer({ request, identity, channel }: SessionSetup): Promise<Record<string, object>> {
  const { github: requested } = request.tools ?? {};
  if (!requested || !identity) return {};
  try {
    const endpoint = await identity.mcpEndpoint();
    if (!endpoint) return {};
    const headers = { ...endpoint.headers, Authorization: `Bearer ${endpoint.token}`, ...requestHeaders(requested) };
    return { [GITHUB_SERVER]: { type: "http", url: `${endpoint.baseUrl}${pathOf(requested)}`, headers } };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    channel.warn("mcp", `The GitHub tools are not available: ${reason}`);
    return {};
  }
}

function pathOf({ enableAllTools, additionalToolsets = [], additionalTools = [] }: GithubToolsRequest): string {
  const wantsMore = enableAllTools || additionalToolsets.length > 0 || additionalTools.length > 0;
  return wantsMore ? "/mcp" : "/mcp/readonly";
}

function requestHeaders(wish: GithubToolsRequest): Record<string, string> {
  const { enableAllTools, additionalToolsets = [], additionalTools = [], enableInsidersMode } = wish;
  const toolsets = enableAllTools
    ? "all"
    : additionalToolsets.length > 0
      ? ["default", ...additionalToolsets].join()
      : "";
  return {
    ...(toolsets !== "" && { "X-MCP-Toolsets": toolsets }),
    ...(additionalTools.length > 0 && { "X-MCP-Tools": additionalTools.join() }),
    ...(enableInsidersMode && { "X-MCP-Insiders": "true" }),
  };
}
