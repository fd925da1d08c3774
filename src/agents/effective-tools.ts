/**
 * Resolves an agent's tools when it starts. The result is a subset of the parent's tools. Tools
 * of MCP servers that the definition declares are added later, by `runtime/agents/agent-pool-setup.ts`.
 */
import type { AgentDefinition } from "./agent.ts";

export interface EffectiveTools {
  /** In the parent's order. */
  readonly tools: readonly string[];
  /** Tools that the definition names and the parent does not have. */
  readonly unknown: readonly string[];
}

export interface Support {
  /** Returns the traits of one of the parent's tools. */
  readonly traitsOf?: (tool: string) => Traits | undefined;
}

interface Traits {
  readonly readOnly?: boolean | undefined;
  /** A read-only agent may have it all the same: it changes no files of the user. */
  readonly forReadOnlyAgents?: boolean;
  /** The tool with which it is granted and refused. */
  readonly companionOf?: string;
}

/** A tool of clients that built-in agents list. It looks code up in a language server. */
const CODE_LOOKUP = "lsp";

export function effectiveTools(
  definition: Pick<AgentDefinition, "tools" | "disallowedTools" | "readOnly" | "source">,
  parentTools: readonly string[],
  support: Support = {},
): EffectiveTools {
  const { traitsOf } = support;
  const { tools: wanted, disallowedTools: refused } = definition;
  const has = (tool: string): boolean => {
    const { readOnly, forReadOnlyAgents, companionOf } = traitsOf?.(tool) ?? {};
    const isIn = (entries: readonly string[]): boolean =>
      entries.some((entry) => matches(entry, tool) || entry === companionOf);
    if (definition.readOnly && !readOnly && !forReadOnlyAgents && tool !== CODE_LOOKUP) return false;
    return (wanted === null || isIn(wanted)) && !isIn(refused);
  };
  // Built-in agents list optional tools, so a missing one is not a problem.
  const named = definition.source === "builtin" ? [] : (definition.tools ?? []);
  return {
    tools: [...new Set(parentTools.filter(has))],
    unknown: named.filter((entry) => !parentTools.some((tool) => matches(entry, tool))),
  };
}

/** `github-*` matches every tool with that prefix. */
function matches(entry: string, tool: string): boolean {
  return entry.endsWith("*") ? tool.startsWith(entry.slice(0, -1)) : entry === tool;
}
