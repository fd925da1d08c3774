/** The member objects of a session, through which surfaces and the runtime reach its parts. */

import type { AgentDefinition } from "../agents/agent.ts";
import type { Grants } from "../permissions/grants.ts";
import type { Policy } from "../permissions/policy.ts";
import type { WorkingDirectory } from "../protocol/event.ts";
import type { TaskLimits } from "../tasks/ports.ts";
import type { Registry } from "../tasks/registry.ts";
import type { TaskRequest } from "../tools/agents/task-port.ts";
import type { ToolPorts } from "../tools/tool.ts";
import type { AgentPool } from "./agents/agent-pool.ts";
import { startAgent } from "./agents/start-agent.ts";
import type { AgentContext } from "./compaction/agent-context.ts";
import type { ModelSelection } from "./model-selection.ts";
import type { ModeState } from "./modes/mode-state.ts";
import type { RunSettings } from "./run-settings.ts";
import { isStreamed, type PromptAndTools, type SessionModel } from "./session-model.ts";
import type { SessionOptions, WorkspaceServices } from "./session-options.ts";
import type { AnswerRunner } from "./turn/answer-runner.ts";
import type { BoundHooks } from "./turn/hooked-calls.ts";
import type { MessageQueue } from "./turn/message-queue.ts";

/** The queue of a session. */
export type SessionQueue = Pick<
  MessageQueue,
  "waiting" | "withdraw" | "editor" | "isWorking" | "isPending" | "whenIdle" | "notify" | "resume" | "closed"
>;

/** The main agent of a session. Model, prompt and tools are the current ones. */
export interface MainAgentPort {
  readonly model: SessionModel;
  /** How to change the model; undefined if it is fixed. */
  readonly selection: ModelSelection | undefined;
  readonly reasoningEffort: RunSettings["reasoningEffort"];
  readonly prompt: PromptAndTools;
  /** Undefined if the conversation is never compacted. */
  readonly context: AgentContext | undefined;
  readonly modes: ModeState;
  readonly limits: NonNullable<RunSettings["limits"]>;
  readonly credits: RunSettings["credits"];
  /** Whether replies are requested as streams. */
  readonly isStreamed: boolean;
  /** Runs one tool for a client, outside the conversation. */
  readonly callTool: AnswerRunner["callTool"];
}

/** The agents that work for the main agent. */
export interface SessionAgents {
  /** Undefined if the main agent works alone. */
  readonly tasks: Registry | undefined;
  readonly limits: TaskLimits | undefined;
  definitions(): readonly AgentDefinition[];
  /** Starts a background agent for a user or a program. The main agent is notified when it ends. */
  start(request: Omit<TaskRequest, "mode" | "toolCallId">): Promise<string>;
}

export interface SessionPermissions {
  readonly policy: Policy;
  /** The user's approvals. */
  readonly grants: Grants;
  readonly reasonToRefuse: RunSettings["reasonToRefuse"];
  /** The hooks that run around calls. */
  readonly hooks: BoundHooks | undefined;
}

/** The folder in which a session works. */
export interface SessionWorkspace {
  readonly cwd: string;
  /** The folder with its repository. */
  readonly directory: WorkingDirectory;
  /** Folders that tools may access; empty: no limit. */
  readonly roots: readonly string[];
  /** The commands of the session, if it may run any. */
  readonly shells: ToolPorts["shells"];
  readonly runCheck: SessionOptions["runCheck"];
  /** Whether commands run in a sandbox, and why not; undefined if the session runs none. */
  readonly sandboxStatus: RunSettings["sandboxStatus"];
  /** Skills, MCP servers and other parts that the runtime has loaded for it. */
  readonly services: WorkspaceServices | undefined;
}

export function mainAgentPort(
  options: SessionOptions,
  { modes, runner }: { readonly modes: ModeState; readonly runner: AnswerRunner },
): MainAgentPort {
  return {
    modes,
    prompt: options.promptAndTools,
    selection: options.modelSelection,
    credits: options.credits,
    isStreamed: isStreamed(options),
    callTool: (call, signal) => runner.callTool(call, signal),
    get model() {
      return options.model;
    },
    get reasoningEffort() {
      return options.reasoningEffort;
    },
    get context() {
      return runner.context;
    },
    get limits() {
      return options.limits ?? {};
    },
  };
}

export function agentsPort(
  { agentPool, promptAndTools, stamp }: SessionOptions,
  { pool, end }: { readonly pool: AgentPool | undefined; readonly end: AbortSignal },
): SessionAgents {
  return {
    tasks: pool?.registry,
    limits: agentPool?.limits,
    definitions: () => agentPool?.agents() ?? [],
    async start(request) {
      const { tasks } = pool?.portsOf(undefined, () => promptAndTools.tools) ?? {};
      return startAgent(tasks, { ...request, toolCallId: stamp.id("call") }, end);
    },
  };
}

export const workspacePort = (options: SessionOptions): SessionWorkspace => ({
  cwd: options.cwd,
  directory: options.context,
  roots: options.roots,
  shells: options.ports.shells,
  runCheck: options.runCheck,
  sandboxStatus: options.sandboxStatus,
  services: options.services,
});
