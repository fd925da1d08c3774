/** What sidekicks of a session are given: less than any agent, and only where there is something to look at. */
import type { AgentPoolOptions } from "../../session/agents/agent-pool-options.ts";
import type { SidekickDefinition, SidekickOptions } from "../../session/agents/sidekicks.ts";
import { sqlStoreTool } from "../../tools/database/sql.ts";
import { contextBoardReader } from "../../tools/memory/context-board.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CompanyParts } from "./agent-pool-setup.ts";

/** Says whether a sidekick of ours has anything to look at, and what it should know before it does. */
export type SidekickCondition = () => Promise<{ readonly notes: readonly string[] } | undefined>;

type Parts = Pick<
  CompanyParts,
  "agents" | "sessionTools" | "inheritedTools" | "workspace" | "mainModel" | "warn" | "conditions"
>;

export function sidekickOptions(
  parts: Parts,
  company: (more: Pick<CompanyParts, "sessionTools" | "inheritedTools" | "warn">) => AgentPoolOptions,
): SidekickOptions {
  const { workspace, mainModel, conditions } = parts;
  const isOff = (): boolean => !workspace.flags.has("SIDEKICK_AGENTS") || mainModel().providerId === UNDERSTUDY;
  const told = new Set<string>();
  // They start again and again; what is wrong with one is said once.
  const warn = (message: string): void => {
    if (!told.has(message)) parts.warn(message);
    told.add(message);
  };
  const inherited = (): readonly Tool[] => parts.inheritedTools?.() ?? parts.sessionTools();
  let made: AgentPoolOptions | undefined;
  const lent = (): AgentPoolOptions => {
    made ??= company({
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
    // Ours start where they have something to look at; those of others say themselves when to stop.
    consider: async ({ name, source }) => (source === "builtin" ? conditions?.get(name)?.() : { notes: [] }),
    async cast(definition) {
      const { tools, model } = await lent().cast({ definition, parentTools: null, toolCallId: "" });
      return { tools: tools ?? [], model };
    },
    outfit: (actor, definition) => lent().outfit(actor, definition),
    warn,
  };
}

/** So many of them at most, whoever brings them: each costs a run for each message. */
const MAX_SIDEKICKS = 8;

/** The stand-in understands no such work. */
const UNDERSTUDY = "understudy";

const isSidekick = (agent: ReturnType<CompanyParts["agents"]>[number]): agent is SidekickDefinition =>
  agent.sidekick !== undefined;

/**
 * Only what changes nothing, starts nobody and asks nobody; of what can do both, the half that reads. Tools of servers
 * pass here; a run keeps those that a rule of the user names.
 */
function reading(tools: readonly Tool[]): readonly Tool[] {
  return tools
    .map((tool) => READING_FORMS.get(tool.name) ?? tool)
    .filter((tool) => (tool.readOnly || tool.from?.kind === "mcp") && !tool.needs && !NOT_THEIRS.has(tool.name));
}

const READING_FORMS: ReadonlyMap<string, Tool> = new Map(
  [sqlStoreTool, contextBoardReader].map((tool) => [tool.name, tool]),
);

const NOT_THEIRS = new Set(["list_agents", "read_agent", "read_inbox", "task_complete", "list_bash", "read_bash"]);
