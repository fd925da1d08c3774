/** The MCP servers of a session, as tools use them. */
import type { McpServerPort } from "./connections.ts";

export interface McpPort {
  servers(): readonly McpServerPort[];
}
