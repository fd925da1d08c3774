/** MCP servers of one agent. They run as long as the agent, and only it sees their tools. */
import type { AgentDefinition } from "../../agents/agent.ts";
import { effectiveTools } from "../../agents/effective-tools.ts";
import type { Tool } from "../../tools/tool.ts";
import { withServersOf } from "../setup/select-main-agent.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { SessionServers } from "./session-servers.ts";

export interface AgentServers {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

/** Longer than any server may take to connect. An agent gets the tools present at its start, and no later ones. */
const PATIENCE_MS = 240_000;

export function agentServers(parts: {
  workspace: Workspace;
  open: SessionServers["open"];
  warn(message: string): void;
}): (definition: AgentDefinition, reservedNames: readonly string[]) => Promise<AgentServers | undefined> {
  return async (definition, reservedNames) => {
    const { mcpServers } = definition;
    if (mcpServers === undefined || Object.keys(mcpServers).length === 0) return undefined;
    const { servers, notices } = withServersOf(definition, parts.workspace);
    for (const notice of notices.slice(parts.workspace.notices.length)) parts.warn(notice);
    const own = servers.servers.filter(({ name }) => Object.hasOwn(mcpServers, name));
    if (own.length === 0) return undefined;
    const mcp = parts.open(own, reservedNames, { waitsForAll: true });
    await mcp.ready(AbortSignal.timeout(PATIENCE_MS));
    return { tools: allowedTools(definition, mcp.tools), close: () => mcp.close() };
  };
}

function allowedTools(definition: AgentDefinition, tools: readonly Tool[]): readonly Tool[] {
  const names = effectiveTools(
    definition,
    tools.map(({ name }) => name),
    { traitsOf: (name) => tools.find((tool) => tool.name === name) },
  ).tools;
  return tools.filter(({ name }) => names.includes(name));
}
