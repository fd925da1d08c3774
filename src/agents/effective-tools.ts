/**
 * Resolves an agent's tools when it starts. Apart from `mandatory`, the result is a subset of the parent's tools. Tools
 * of MCP servers that the definition declares are added later, by `runtime/agents/agent-pool-setup.ts`.
 */
import type { AgentDefinition } from "./agent.ts";
import { companions } from "./tool-names.ts";

export interface EffectiveTools {
  /** In the parent's order, followed by the mandatory tools. */
  readonly tools: readonly string[];
  /** Tools that the definition names and the parent does not have. */
  readonly unknown: readonly string[];
}

export interface Support {
  /** Tools that the runtime adds for every agent of this kind, whatever the definition says. */
  readonly mandatory?: readonly string[];
  /** Reports whether a tool is read-only. A read-only agent may have such tools, besides those in `READING`. */
  readonly isReadOnly?: (tool: string) => boolean;
}

/**
 * Built-in tools that a read-only agent may have: they change no files of the user. `task` qualifies because a subagent
 * gets a subset of these; only the MCP servers of its own definition add to them (`runtime/mcp/agent-servers.ts`).
 */
const READING: ReadonlySet<string> = new Set([
  "view",
  "grep",
  "glob",
  "lsp",
  "web_fetch",
  "web_search",
  "skill",
  "update_todo",
  "read_bash",
  "list_bash",
  "task",
  "read_agent",
  "write_agent",
  "list_agents",
  "stop_agent",
  "list_mcp_resources",
  "read_mcp_resource",
]);

export function effectiveTools(
  definition: Pick<AgentDefinition, "tools" | "disallowedTools" | "readOnly" | "source">,
  parentTools: readonly string[],
  support: Support = {},
): EffectiveTools {
  const { mandatory = [], isReadOnly = () => false } = support;
  const wanted = definition.tools === null ? undefined : withCompanions(definition.tools);
  const refused = withCompanions(definition.disallowedTools);
  const has = (tool: string): boolean =>
    (wanted === undefined || wanted.some((entry) => matches(entry, tool))) &&
    !refused.some((entry) => matches(entry, tool)) &&
    (!definition.readOnly || READING.has(tool) || isReadOnly(tool));
  // Built-in agents list optional tools, so a missing one is not a problem.
  const named = definition.source === "builtin" ? [] : (definition.tools ?? []);
  return {
    tools: [...new Set([...parentTools.filter(has), ...mandatory])],
    unknown: named.filter((entry) => !parentTools.some((tool) => matches(entry, tool))),
  };
}

function withCompanions(entries: readonly string[]): readonly string[] {
  return entries.flatMap((entry) => [entry, ...(companions.get(entry) ?? [])]);
}

/** `github-*` matches every tool with that prefix. */
function matches(entry: string, tool: string): boolean {
  return entry.endsWith("*") ? tool.startsWith(entry.slice(0, -1)) : entry === tool;
}
