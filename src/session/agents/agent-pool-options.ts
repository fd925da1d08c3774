/** The options of a session's agents. */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { TaskLimits } from "../../tasks/ports.ts";
import type { Actor, AgentSetup } from "./agent-run.ts";
import type { SidekickOptions } from "./sidekicks.ts";

/** What the runtime knows about agents. */
export interface AgentPoolOptions {
  readonly limits: TaskLimits;
  /** Whether an agent in the background can be written to after it has answered. */
  readonly multiTurn: boolean;
  /** False: an executor of this process runs each agent; after the process has ended, the agent cannot continue. */
  readonly sessionBased?: boolean;
  /** False: whoever calls what a server takes only as a task waits for it. */
  readonly mcpTasks?: boolean;
  agents(): readonly AgentDefinition[];
  /** Which of the tools someone has an agent would get, and on which model it would run. Throws when it may not start. */
  cast(request: CastRequest): Promise<Cast>;
  /** Everything a task works with, made when it runs. */
  outfit(task: Actor, definition: AgentDefinition): Promise<AgentSetup>;
  /** The reason why the session's model cannot run coordinated workers; undefined when it can. */
  workersRefused?(): string | undefined;
  /** Those that start by themselves. */
  readonly sidekicks?: SidekickOptions;
}

export interface CastRequest {
  readonly definition: AgentDefinition;
  readonly model?: string;
  readonly reasoningEffort?: string;
  /** What whoever starts it may use; null = everything the session has. */
  readonly parentTools: readonly string[] | null;
  readonly parentModel?: string;
  readonly isolation?: "worktree";
  readonly toolCallId: string;
}

export interface Cast {
  readonly tools: readonly string[] | null;
  readonly model: string;
  readonly warnings: readonly string[];
  readonly worktree?: string;
}
