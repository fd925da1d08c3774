/** The options of a session's agents. */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { TaskLimits } from "../../tasks/ports.ts";
import type { AgentSetup, AgentTask } from "./agent-run.ts";
import type { RemoteAgents } from "./remote-agent.ts";
import type { SidekickOptions } from "./sidekicks.ts";

/** The runtime's side of a session's agents. */
export interface AgentPoolOptions {
  readonly limits: TaskLimits;
  /** Whether a background agent accepts messages after it has answered. */
  readonly multiTurn: boolean;
  /** False: an executor in this process runs each agent, which cannot continue after the process has ended. */
  readonly sessionBased?: boolean;
  /** False: a call that an MCP server runs only as a task is awaited instead of moved to the background. */
  readonly mcpTasks?: boolean;
  agents(): readonly AgentDefinition[];
  /** Resolves the tools and the model of an agent that is about to start. Throws if it must not start. */
  resolveAgent(request: ResolveAgentRequest): Promise<ResolvedAgent>;
  /** Builds everything a task works with. Called when it runs. */
  agentSetup(task: AgentTask, definition: AgentDefinition): Promise<AgentSetup>;
  /** Returns the reason why the session's model cannot run coordinated workers, or undefined if it can. */
  workersRefused?(): string | undefined;
  /** Runs agents on other workers; absent where the session does not run on a worker. */
  readonly remoteAgents?: RemoteAgents | undefined;
  /** Agents that start automatically. */
  readonly sidekicks?: SidekickOptions;
}

export interface ResolveAgentRequest {
  readonly definition: AgentDefinition;
  readonly model?: string;
  readonly reasoningEffort?: string;
  /** The parent's tools; null: all tools of the session. */
  readonly parentTools: readonly string[] | null;
  readonly parentModel?: string;
  readonly isolation?: "worktree";
  readonly toolCallId: string;
}

export interface ResolvedAgent {
  readonly tools: readonly string[] | null;
  readonly model: string;
  readonly warnings: readonly string[];
  readonly worktree?: string;
  readonly placement?: "elsewhere";
}
