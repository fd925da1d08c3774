/** Runs an agent by its definition. With `SESSION_BASED_SUBAGENTS` off, the agent ends with its process. */
import type { AgentDefinition } from "../agents/agent.ts";
import type { Tool } from "../tools/tool.ts";
import type { AgentSetup, AgentTask } from "./agents/agent-run.ts";
import type { CallbackTask } from "./requests/callback-tasks.ts";

interface ExecutorOptions {
  agentSetup(task: AgentTask, definition: AgentDefinition): Promise<AgentSetup>;
}

/** Runs the agent by the definition as it was at the start, even if its file changes. */
export function executorOf(definition: AgentDefinition, options: ExecutorOptions): CallbackTask {
  return {
    definition,
    run: (task, _io, asAgent) =>
      asAgent({
        agentSetup: async () => within(task, await options.agentSetup(task, definition)),
        limitReached: () => undefined,
      }),
  };
}

/** Removes every tool that the agent may not use. Tools of the agent's own MCP servers stay. */
export function within({ tools }: Pick<AgentTask, "tools">, agentSetup: AgentSetup): AgentSetup {
  if (tools === null) return agentSetup;
  const { system, tools: given } = agentSetup.promptAndTools;
  const isAllowed = ({ name, origin }: Tool): boolean => origin?.kind === "mcp" || tools.includes(name);
  return { ...agentSetup, promptAndTools: { system, tools: given.filter(isAllowed) } };
}
