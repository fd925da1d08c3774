import { defined } from "../../lib/defined.ts";
import type { ScheduleRegistry } from "../../session/modes/schedules.ts";
import type { SessionOptions } from "../../session/session.ts";
import type { SessionDatabase } from "../../tools/database/session-database.ts";
import type { CurrentAgents } from "../agents/current-agents.ts";
import type { LateFactories } from "../agents/late-factories.ts";
import type { SessionBoard } from "../knowledge/session-board.ts";
import type { SessionMemory } from "../knowledge/session-memory.ts";
import { mcpApps } from "../mcp/mcp-apps.ts";
import { serverPrompts } from "../mcp/server-prompts.ts";
import type { SessionMcp } from "../mcp/session-mcp.ts";
import { sessionMcpPort } from "../mcp/session-mcp-port.ts";
import { showsApps, summaries } from "../mcp/session-servers.ts";
import { permissionService } from "../permissions/permission-service.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { CurrentSkills } from "./current-skills.ts";
import type { MainAgentChoice } from "./main-agent-choice.ts";
import type { SessionExtensions } from "./session-extensions.ts";
import type { SessionRules } from "./session-rules.ts";
import type { SessionSetup } from "./session-setup.ts";
import type { SessionTracker } from "./session-tracker.ts";

/** Returns the state beside the conversation that surfaces can read and change. */
export function sessionServices(
  setup: SessionSetup,
  parts: {
    workspace: Workspace;
    agentChoice: MainAgentChoice;
    agents: CurrentAgents | undefined;
    mcp: SessionMcp | undefined;
    skills: CurrentSkills;
    rules: SessionRules;
    extensions: SessionExtensions | undefined;
    factories: LateFactories | undefined;
    memory: SessionMemory | undefined;
    board: SessionBoard | undefined;
    database: SessionDatabase;
    schedules: () => ScheduleRegistry | undefined;
    tracker: () => SessionTracker | undefined;
  },
): NonNullable<SessionOptions["services"]> {
  const { workspace, agentChoice, agents, mcp, memory, board, database, schedules } = parts;
  return {
    filesFolder: setup.files,
    identity: setup.identity,
    get skills() {
      return parts.skills.all;
    },
    setSkillEnabled: (name, enabled) => parts.skills.setEnabled(name, enabled),
    reloadSkills: () => parts.skills.reload(),
    instructions: () => workspace.instructions.files,
    plugins: () => workspace.plugins,
    permissions: permissionService(setup, parts.rules),
    mayShowApps: workspace.flags.has("MCP_APPS"),
    showsApps: showsApps(setup, workspace),
    ...(mcp && { mcp: sessionMcpPort(mcp, mcpApps(setup, { mcp, rules: parts.rules })) }),
    serverSummaries: () => summaries(mcp, workspace),
    servers: () => serverEntries(mcp, workspace),
    ...(mcp && { signIn: (serverName) => signIn(mcp, serverName, setup) }),
    ...(mcp && { serverPrompts: serverPrompts(mcp, () => setup.channel.session?.queue.closed ?? never) }),
    agents: agentChoice,
    ...defined({ extensions: parts.extensions, factories: parts.factories }),
    ...(agents && { reloadAgents: () => agents.reload(), giveSubagents: (given) => agents.give(given) }),
    schedules,
    memories: () => memory?.count ?? 0,
    ...(board && {
      board: {
        isTrustedForRun: workspace.trust.state === "run",
        count: async () => (await board.board.list()).length,
        flush: async () => parts.tracker()?.flush(),
      },
    }),
    fork: (toEventId) => forkHere(toEventId, setup),
    readTodos: () => database.readTodos(),
    readDependencies: () => database.readDependencies(),
  };
}

/** Aborts never: the session is not open yet. */
const { signal: never } = new AbortController();

async function forkHere(toEventId: string | undefined, setup: SessionSetup) {
  const { forkSession } = await import("../sessions/fork-session.ts");
  const { session } = setup.channel;
  return forkSession({ sessionId: setup.log.sessionId, ...defined({ toEventId, session }) }, setup);
}

async function signIn(mcp: SessionMcp, serverName: string, setup: SessionSetup): Promise<string | undefined> {
  const { signInToServer } = await import("../mcp/server-sign-in.ts");
  return (await signInToServer(mcp, serverName, setup))?.href;
}

async function serverEntries(mcp: SessionMcp | undefined, workspace: Workspace) {
  await mcp?.opened();
  return summaries(mcp, workspace).map(({ name, status, error }) => {
    const tools = mcp?.definitions(name)?.length;
    return { name, status, ...defined({ tools, error }) };
  });
}
