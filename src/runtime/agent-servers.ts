/** MCP servers that one agent brings: they run while it is there, and nobody else sees their tools. */
import type { AgentDefinition } from "../agents/agent.ts";
import { effectiveTools } from "../agents/effective-tools.ts";
import type { McpServerConfig } from "../tools/mcp/server.ts";
import type { Tool } from "../tools/tool.ts";
import { withServersOf } from "./preselect.ts";
import type { SessionMcp } from "./session-mcp.ts";
import type { Workspace } from "./workspace.ts";

export interface AgentServers {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

/** An agent that is started waits for its servers no longer than this. */
const PATIENCE_MS = 20_000;

export function agentServers(what: {
  workspace: Workspace;
  open(configs: readonly McpServerConfig[], reservedNames: readonly string[]): SessionMcp;
  warn(message: string): void;
}): (definition: AgentDefinition, reservedNames: readonly string[]) => Promise<AgentServers | undefined> {
  return async (definition, reservedNames) => {
    const { mcpServers } = definition;
    if (mcpServers === undefined || Object.keys(mcpServers).length === 0) return undefined;
    const { servers, notices } = withServersOf(definition, what.workspace);
    for (const notice of notices.slice(what.workspace.notices.length)) what.warn(notice);
    const own = servers.servers.filter(({ name }) => Object.hasOwn(mcpServers, name));
    if (own.length === 0) return undefined;
    const mcp = what.open(own, reservedNames);
    await mcp.ready(AbortSignal.timeout(PATIENCE_MS));
    return { tools: allowed(definition, mcp.tools), close: () => mcp.close() };
  };
}

function allowed(definition: AgentDefinition, tools: readonly Tool[]): readonly Tool[] {
  const names = effectiveTools(
    definition,
    tools.map(({ name }) => name),
    { isReadOnly: (name) => tools.some((tool) => tool.name === name && tool.readOnly === true) },
  ).tools;
  return tools.filter(({ name }) => names.includes(name));
}
