/** Which tools an agent has when it starts: never one that whoever starts it does not have. */
import type { AgentDefinition } from "./agent.ts";
import { companions } from "./tool-names.ts";

export interface EffectiveTools {
  /** In the order of the parent's, then the support tools. */
  readonly tools: readonly string[];
  /** What the definition names and its parent does not have. */
  readonly unknown: readonly string[];
}

export interface Support {
  /** Given by the runtime to every agent of this kind, whatever its definition says. */
  readonly mandatory?: readonly string[];
  /** Whether a tool that is not ours changes nothing. */
  readonly isReadOnly?: (tool: string) => boolean;
}

/** Tools of ours that change nothing; what `task` starts has no more than these either. */
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
  // Our own agents name what they could use; that some of it is not there is no mistake.
  const named = definition.source === "builtin" ? [] : (definition.tools ?? []);
  return {
    tools: [...new Set([...parentTools.filter(has), ...mandatory])],
    unknown: named.filter((entry) => !parentTools.some((tool) => matches(entry, tool))),
  };
}

function withCompanions(entries: readonly string[]): readonly string[] {
  return entries.flatMap((entry) => [entry, ...(companions.get(entry) ?? [])]);
}

/** `github-*` means every tool that begins so. */
function matches(entry: string, tool: string): boolean {
  return entry.endsWith("*") ? tool.startsWith(entry.slice(0, -1)) : entry === tool;
}
