/** Equips the sidekicks of a session: fewer tools than any agent, and only if there is something to look at. */
import type { AgentPoolOptions } from "../../session/agents/agent-pool-options.ts";
import type { SidekickDefinition, SidekickOptions } from "../../session/agents/sidekicks.ts";
import { sqlStoreTool } from "../../tools/database/sql.ts";
import { contextBoardReader } from "../../tools/memory/context-board.ts";
import type { Tool } from "../../tools/tool.ts";
import type { AgentPoolParts } from "./agent-pool-setup.ts";

/** Returns notes for a built-in sidekick, or undefined if it has nothing to look at. */
export type SidekickCondition = () => Promise<{ readonly notes: readonly string[] } | undefined>;

type Parts = Pick<
  AgentPoolParts,
  "agents" | "sessionTools" | "inheritedTools" | "workspace" | "mainModel" | "warn" | "conditions"
>;

export function sidekickOptions(
  parts: Parts,
  agentPool: (more: Pick<AgentPoolParts, "sessionTools" | "inheritedTools" | "warn">) => AgentPoolOptions,
): SidekickOptions {
  const { workspace, mainModel, conditions } = parts;
  const isOff = (): boolean => !workspace.flags.has("SIDEKICK_AGENTS") || mainModel().providerId === UNDERSTUDY;
  const warned = new Set<string>();
  // Sidekicks start repeatedly, so each warning is shown once.
  const warn = (message: string): void => {
    if (!warned.has(message)) parts.warn(message);
    warned.add(message);
  };
  const inherited = (): readonly Tool[] => parts.inheritedTools?.() ?? parts.sessionTools();
  let made: AgentPoolOptions | undefined;
  const lent = (): AgentPoolOptions => {
    made ??= agentPool({
      sessionTools: () => reading(parts.sessionTools()),
      inheritedTools: () => reading(inherited()),
      warn,
    });
    return made;
  };
  return {
    agents() {
      const all = isOff() ? [] : parts.agents().filter(isSidekick);
      if (all.length > MAX_SIDEKICKS) warn(`Only ${MAX_SIDEKICKS} of ${all.length} sidekicks start.`);
      return all.slice(0, MAX_SIDEKICKS);
    },
    // Built-in sidekicks have conditions; others always start and stop by themselves.
    consider: async ({ name, source }) => (source === "builtin" ? conditions?.get(name)?.() : { notes: [] }),
    async resolveAgent(definition) {
      const { tools, model } = await lent().resolveAgent({ definition, parentTools: null, toolCallId: "" });
      return { tools: tools ?? [], model };
    },
    agentSetup: (actor, definition) => lent().agentSetup(actor, definition),
    warn,
  };
}

/** Limit for sidekicks from all sources, because each costs a run per message. */
const MAX_SIDEKICKS = 8;

/** The understudy cannot do such work. */
const UNDERSTUDY = "understudy";

const isSidekick = (agent: ReturnType<AgentPoolParts["agents"]>[number]): agent is SidekickDefinition =>
  agent.sidekick !== undefined;

/**
 * Returns the tools that only read: they change nothing, start no agents and ask no questions. Tools that also write
 * are replaced by their reading form. MCP tools pass here; a run keeps only those that the user's rules name.
 */
function reading(tools: readonly Tool[]): readonly Tool[] {
  return tools
    .map((tool) => READING_FORMS.get(tool.name) ?? tool)
    .filter(({ readOnly, origin, needs, mainOnly, companionOf }) => {
      return (readOnly || origin?.kind === "mcp") && !needs && !mainOnly && companionOf === undefined;
    });
}

const READING_FORMS: ReadonlyMap<string, Tool> = new Map(
  [sqlStoreTool, contextBoardReader].map((tool) => [tool.name, tool]),
);
