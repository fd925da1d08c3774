import type { AgentPoolOptions } from "../../session/agents/agent-pool-options.ts";
import { isSidekickId } from "../../session/agents/sidekick-id.ts";
import type { SessionLog } from "../../store/store.ts";
import type { SessionKnowledge } from "../../tools/coordination/session-knowledge.ts";
import { agentPoolOptions } from "../agents/agent-pool-setup.ts";
import type { AgentWorkspaces } from "../agents/agent-workspace.ts";
import type { CurrentAgents } from "../agents/current-agents.ts";
import { sidekickConditions } from "../agents/sidekick-conditions.ts";
import type { SessionBoard } from "../knowledge/session-board.ts";
import type { SessionMemory } from "../knowledge/session-memory.ts";
import { agentServers } from "../mcp/agent-servers.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { MainAgent } from "./main-agent.ts";
import { readPlan } from "./modes.ts";
import type { CurrentPromptAndTools } from "./prompt-and-tools.ts";
import { promptOf } from "./session-prompt.ts";
import type { SessionRules } from "./session-rules.ts";
import type { SessionSetup } from "./session-setup.ts";
import type { ToolBackends } from "./tool-backends.ts";
import { inheritedTools, type ToolChoice } from "./tool-choice.ts";

/** Returns the agents that may work for the main agent, and how each is equipped. */
export function agentPoolOptionsOf(
  setup: SessionSetup,
  parts: {
    agents: CurrentAgents;
    mainAgent: MainAgent;
    promptAndTools: CurrentPromptAndTools;
    choice: ToolChoice;
    agentWorkspaces: AgentWorkspaces;
    servers: SessionServers;
    board: SessionBoard | undefined;
    memory: SessionMemory | undefined;
    rules: SessionRules;
    redactor: ToolBackends["redactor"];
  },
): AgentPoolOptions {
  const { environment, models, request, context, log, channel, identity } = setup;
  const { agents, promptAndTools, choice, agentWorkspaces, servers, board, memory } = parts;
  const { workspace } = parts.mainAgent;
  const knowledge: SessionKnowledge = { memory: () => memory?.section ?? "", plan: () => readPlan(setup.files) };
  return agentPoolOptions({
    environment,
    workspace,
    models,
    mainModel: () => models.current,
    mainEffort: () => models.reasoningEffort,
    prompt: promptOf(setup),
    memories: knowledge.memory,
    agents: () => agents.agents,
    given: () => agents.given,
    sessionTools: () => promptAndTools.sessionTools,
    inheritedTools: () => inheritedTools(promptAndTools.sessionTools, choice),
    ...(request.agents?.wakes === false &&
      request.model?.name !== undefined && {
        modelOverride: ({ id }) => (hasTask(log, id) ? models.current : undefined),
      }),
    async workspaceFor(task) {
      const found = await agentWorkspaces.workspaceFor(task);
      const agentWorkspace = { ...found, ports: { ...found.ports, knowledge } };
      // Sidekicks only read the board.
      if (board && isSidekickId(task.id))
        return { ...agentWorkspace, ports: { ...agentWorkspace.ports, board: board.readingPort } };
      return board?.equip(agentWorkspace, task.spec.agentName) ?? agentWorkspace;
    },
    serversFor: agentServers({ workspace, open: servers.open, warn: (message) => channel.warn("mcp", message) }),
    worktrees: context.gitRoot === undefined ? undefined : agentWorkspaces.worktrees,
    conditions: sidekickConditions({ board, memory, cwd: context.cwd, gitRoot: context.gitRoot }),
    ...(request.agents?.elsewhere && { remoteAgents: remoteAgentsOf(setup, parts) }),
    most: request.agents?.limits,
    accountPlan: identity && (async () => (await identity.status()).plan),
    warn: (message) => channel.warn("agent", message),
  });
}

function remoteAgentsOf(
  { request, context, files, records }: SessionSetup,
  { rules, redactor }: { rules: SessionRules; redactor: ToolBackends["redactor"] },
): NonNullable<Parameters<typeof agentPoolOptions>[0]["remoteAgents"]> {
  const redact = (text: string): string => redactor?.text(text) ?? text;
  const { current, mode } = rules;
  const { cwd } = context;
  const host = { policy: current.policy, cwd, own: [cwd, files, records], mode: () => mode.current(), redact };
  return (own) => request.agents?.elsewhere?.({ ...own, ...host });
}

/** Returns whether the task is older than this process. Newer ones choose their own models. */
function hasTask({ events }: SessionLog, taskId: string): boolean {
  return events.some((event) => event.type === "troupe.task_created" && event.data.taskId === taskId);
}
