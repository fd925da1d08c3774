import { findAgent } from "../agents/names.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { ScheduleRegistry } from "../session/schedules.ts";
import type { SessionOptions } from "../session/session.ts";
import type { SessionDatabase } from "../tools/database/session-database.ts";
import type { Draft } from "./draft.ts";
import type { LiveOffer } from "./offer.ts";
import type { SessionMcp } from "./session-mcp.ts";
import type { SessionMemory } from "./session-memory.ts";
import type { Workspace } from "./workspace.ts";

/** What surfaces may know of a session beyond its conversation, and change in it. */
export function sessionSurroundings(
  draft: Draft,
  how: {
    workspace: Workspace;
    offer: LiveOffer;
    mcp: SessionMcp | undefined;
    memory: SessionMemory | undefined;
    database: SessionDatabase;
    schedules: () => ScheduleRegistry | undefined;
  },
): NonNullable<SessionOptions["surroundings"]> {
  const { workspace, mcp, memory, database, schedules } = how;
  return {
    filesFolder: draft.files,
    skills: workspace.skills,
    servers: () => (mcp ? serverEntries(mcp) : []),
    agents: leadChoice(draft, how),
    schedules,
    memories: () => memory?.count ?? 0,
    ...(workspace.flags.has("COPILOT_SUBCONSCIOUS") && { board: { isTrustedForRun: workspace.trust.state === "run" } }),
    readTodos: () => database.readTodos(),
    readDependencies: () => database.readDependencies(),
  };
}

function serverEntries(mcp: SessionMcp) {
  return mcp.servers.map((server) => {
    const { status, error } = server.state();
    const tools = server.knownDefinitions()?.length ?? 0;
    return { name: server.config.name, status, tools, ...(error !== undefined && { error }) };
  });
}

/** Who leads can be changed while the session is open; what a model or servers of its own would change, with --agent. */
function leadChoice({ listener }: Draft, { offer, workspace }: { offer: LiveOffer; workspace: Workspace }) {
  const { agents } = workspace.agents;
  return {
    list: () => agents.map(({ name, description, userInvocable }) => ({ name, description, userInvocable })),
    selected: () => offer.lead?.name,
    async select(name: string | undefined) {
      const chosen = name === undefined ? undefined : findAgent(name, agents);
      if (name !== undefined && !chosen) throw new TroupeError("usage", `Custom agent '${name}' not found.`);
      offer.setLead(chosen);
      if (!chosen) return listener.say("subagent.deselected", {});
      const { name: agentName, displayName: agentDisplayName, tools } = chosen;
      return listener.say("subagent.selected", { agentName, agentDisplayName, tools: tools && [...tools] });
    },
  };
}
