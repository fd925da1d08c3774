/** Tokens for remote MCP servers, as connections use them. */
import type { TokenSource } from "../../tools/mcp/oauth/oauth-host.ts";
import type { McpServerConfig } from "../../tools/mcp/server.ts";

export interface SessionTokens extends TokenSource {
  /** Whether the host was asked for this server's token and brought none. */
  hasDeclined(config: McpServerConfig): boolean;
  /** From now on it is asked again: for all servers, or one. */
  askAgain(serverName?: string): void;
}
