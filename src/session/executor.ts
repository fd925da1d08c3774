/** Runs an agent by its definition. With `SESSION_BASED_SUBAGENTS` off, the agent ends with its process. */
import type { AgentDefinition } from "../agents/agent.ts";
import type { Tool } from "../tools/tool.ts";
import type { Actor, AgentSetup } from "./agents/agent-run.ts";
import type { CallbackTask } from "./requests/callback-tasks.ts";

interface ExecutorOptions {
  outfit(task: Actor, definition: AgentDefinition): Promise<AgentSetup>;
}

/** Runs the agent by the definition as it was at the start, even if its file changes. */
export function executorOf(definition: AgentDefinition, options: ExecutorOptions): CallbackTask {
  return {
    definition,
    run: (task, _io, asAgent) =>
      asAgent({
        outfit: async () => within(task, await options.outfit(task, definition)),
        limitReached: () => undefined,
      }),
  };
}

/** Removes every tool that the agent may not use. Tools of the agent's own MCP servers stay. */
export function within({ tools }: Pick<Actor, "tools">, outfit: AgentSetup): AgentSetup {
  if (tools === null) return outfit;
  const { system, tools: given } = outfit.offer;
  const isAllowed = ({ name, from }: Tool): boolean => from?.kind === "mcp" || tools.includes(name);
  return { ...outfit, offer: { system, tools: given.filter(isAllowed) } };
}
