/** Tokens for remote MCP servers, as connections use them. */
import type { TokenSource } from "../../tools/mcp/oauth/oauth-host.ts";
import type { McpServerConfig } from "../../tools/mcp/server.ts";

export interface SessionTokens extends TokenSource {
  /** Returns whether the host was asked for this server's token and provided none. */
  hasDeclined(config: McpServerConfig): boolean;
  /** Allows asking the host again, for all servers or one. */
  askAgain(serverName?: string): void;
}
