/** The MCP servers of a session, as tools use them. */
import type { McpServer } from "./connections.ts";

export interface McpPort {
  servers(): readonly McpServer[];
}
