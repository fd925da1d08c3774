/** The request for a session: every option a surface can set. */

import type { SessionMode } from "../commands/command.ts";
import type { MemoryStore } from "../context/memory/memory.ts";
import type { SectionTransform } from "../context/sections.ts";
import type { SystemMessageConfig } from "../context/system-message.ts";
import type { FactorySource } from "../factories/ports.ts";
import type { HookPoint } from "../hooks/points.ts";
import type { EffectGuard } from "../lib/effect-guard.ts";
import type { Json } from "../lib/json.ts";
import type { TraceContext } from "../lib/trace-context.ts";
import type { GivenProviders, ModelCapabilities } from "../model/given-providers.ts";
import type { SharedBudget } from "../model/shared-budget.ts";
import type { ModelFetch } from "../model/wire/endpoint.ts";
import type { OpenSocket } from "../model/wire/transport/socket.ts";
import type { Policy } from "../permissions/policy.ts";
import type { RemoteAgents } from "../session/agents/remote-agent.ts";
import type { Limits } from "../session/budget/budget.ts";
import type { CompactionOptions } from "../session/compaction/compaction-options.ts";
import type { ExternalTools } from "../session/requests/external-tools.ts";
import type { SessionOptions } from "../session/session.ts";
import type { TaskLimits } from "../tasks/ports.ts";
import type { TaskRecord } from "../tasks/task-record.ts";
import type { TextBufferPort } from "../tools/text-buffers.ts";
import type { PermissionFlags } from "./permissions/policy.ts";
import type { ToolChoice } from "./setup/tool-choice.ts";
import type { WorkspaceRequest } from "./workspace/workspace.ts";

export interface SessionRequest {
  readonly cwd: string;
  readonly name?: string | undefined;
  /** The mode at the start: how independently the agent works. */
  readonly mode?: SessionMode | undefined;
  readonly model?: ModelRequest;
  readonly permissions?: PermissionFlags;
  readonly tools?: ToolsRequest;
  readonly context?: ContextRequest;
  readonly agents?: AgentsRequest;
  readonly client?: ClientRequest;
  readonly limits?: LimitsRequest;
  /** How to load the workspace, and what to use in addition. */
  readonly workspace?: WorkspaceRequest;
  /** Set where another process can take the session over: calls, hooks and commands run only while this one has it. */
  readonly effects?: EffectGuard | undefined;
  /** The trace that its runs belong to, unless a message names another. */
  readonly trace?: TraceContext | undefined;
  /** For a resumed session. */
  readonly resume?: ResumeRequest;
}

/** The session's model and how it is asked. */
interface ModelRequest {
  /** See `troupe --help`, Model. */
  readonly name?: string | undefined;
  readonly reasoningEffort?: SessionOptions["reasoningEffort"];
  readonly reasoningSummary?: SessionOptions["reasoningSummary"];
  /** Emits deltas while a reply arrives. */
  readonly streaming?: boolean | undefined;
  /** Transport of replies when no client watches them arrive (default: streamed). */
  readonly replies?: "streamed" | "whole" | undefined;
  /** Requests citations of the documents that answers rely on. */
  readonly citations?: boolean | undefined;
  /** Providers and models of the program, replacing or extending configured ones. */
  readonly providers?: GivenProviders | undefined;
  /** Overrides the provider's statements about the session's model. */
  readonly capabilities?: ModelCapabilities | undefined;
  /** Replaces network access for this session's models. */
  readonly fetch?: ModelFetch | undefined;
  /** Opens WebSockets in the same way. */
  readonly socket?: OpenSocket | undefined;
  /** False: GitHub models are not used over WebSockets. */
  readonly githubSockets?: boolean | undefined;
}

/** The tools that are offered, and the size of their output. */
interface ToolsRequest {
  readonly choice?: ToolChoice | undefined;
  readonly search?: { readonly enabled?: boolean; readonly threshold?: number } | undefined;
  /** Uses GitHub's MCP server if the session has a GitHub identity. */
  readonly github?: GithubToolsRequest | undefined;
  /** Waits until each new MCP server is connected or has failed, because no later message could use its tools. */
  readonly waitForServers?: boolean | undefined;
  /** Tool output beyond this many bytes is written to a file. */
  readonly outputBytes?: number | undefined;
  /** Absolute folder for these files (default: the session's own). */
  readonly outputFolder?: string | undefined;
}

/** The content of the prompt and of the conversation. */
interface ContextRequest {
  readonly systemMessage?: SystemMessageConfig | undefined;
  /** Instructions of the user's organisation; part of the system prompt. */
  readonly organizationInstructions?: string | undefined;
  /** False: nested instruction files are not loaded when the agent reaches their folder. */
  readonly nestedInstructions?: boolean | undefined;
  /** The only built-in skills to use. */
  readonly builtinSkills?: readonly string[] | undefined;
  /** Adds the time of acceptance to each prompt. */
  readonly datesPrompts?: boolean | undefined;
  /** Whether facts are remembered between sessions (default: the user's settings). */
  readonly memory?: MemoryRequest | undefined;
  /** When to summarise the conversation; unset values have defaults. */
  readonly compaction?: Partial<CompactionOptions> | undefined;
  /** False: git information about the folder is not read. */
  readonly git?: boolean | undefined;
  /** False: the agent cannot query past sessions. */
  readonly sessionStore?: boolean | undefined;
}

/** The main agent and the agents that work for it. */
interface AgentsRequest {
  /** The session's main agent from the first message on; `default` selects none. */
  readonly main?: string | undefined;
  /** False: the main agent works alone. */
  readonly delegation?: boolean | undefined;
  /** False: notifications of agents wait for the next message to the main agent. */
  readonly wakes?: boolean | undefined;
  /** How long a finished session waits for background agents. */
  readonly waitMs?: number | undefined;
  /** The session whose learnings this one adds to the context board. Only then may `rem-agent` be the main agent. */
  readonly detachedFrom?: string | undefined;
  /** Builds the way to other workers, for agents that run as sessions of their own. */
  readonly elsewhere?: ((session: AgentHost) => RemoteAgents) | undefined;
  /** For a session that runs an agent of another one: lower limits on agents. */
  readonly limits?: { readonly maxDepth: number; readonly maxTotal: number } | undefined;
}

/** Facts that agents on other workers take over from their session. */
export interface AgentHost {
  readonly policy: Policy;
  readonly cwd: string;
  /** The folders that every session has, wherever it runs. */
  readonly own: readonly string[];
  mode(): SessionMode;
  readonly limits: TaskLimits;
  /** The names of the tools that an agent without a list of tools has. */
  tools(task: TaskRecord): readonly string[];
  redact(text: string): string;
}

/** The program that uses the session, and what it offers. */
interface ClientRequest {
  /** Reported to providers. */
  readonly name?: string | undefined;
  readonly program?: SessionProgram | undefined;
  /** False: the model must not ask the user questions. Default: the user's setting `askUser`, else true. */
  readonly askUser?: boolean | undefined;
  /** How the model asks questions: one with choices, or a form with fields. */
  readonly askUserVariant?: "legacy" | "elicitation" | undefined;
  /** The program shows apps of MCP servers, and servers are told so. */
  readonly mcpApps?: boolean | undefined;
  /** A client requests extensions; `sdkPath` is the folder of its SDK. */
  readonly extensions?: { readonly sdkPath?: string } | undefined;
  /** The session's GitHub token. An invalid one is refused. */
  readonly githubToken?: string | undefined;
}

interface LimitsRequest extends Limits {
  /** Budget in AI credits of one cent. The agent is told, and it is enforced if the model's price is known. */
  readonly credits?: number | undefined;
  /** A budget that other processes share. Every model call of the session is paid from it. */
  readonly sharedBudget?: SharedBudget | undefined;
}

interface ResumeRequest {
  /** Data of the resume event in its log. */
  readonly event?: SessionOptions["resumed"];
  /** `session.queue.resume` resumes calls that were waiting for a client when the session closed. */
  readonly continuesPending?: boolean | undefined;
  /** Whether this was the session's own working folder on another machine. What was asked there holds here. */
  readonly isOwnFolder?: ((folder: string) => boolean) | undefined;
  /** How long to wait for an idle process to release the session. */
  readonly patienceMs?: number | undefined;
}

export interface HookListener {
  /** Name for error messages. */
  readonly name: string;
  /** Trust level: an extension's listener counts like hooks of its owner. Unset for a client's listener. */
  readonly owner?: "user" | "project";
  /** Resolves with a result that a hook of this type may return; undefined means no opinion. */
  invoke(hookType: HookPoint, input: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<unknown>;
}

/** Services of client programs for a session. All of them may change while the session is open. */
export interface SessionProgram {
  /** Tools that clients run. */
  readonly tools?: ExternalTools;
  /** Listeners that are called for every hook event. */
  hooks?(): readonly HookListener[];
  /** Transforms sections of the system prompt each time it is built. */
  readonly transform?: SectionTransform;
  /** Workflows of clients. */
  readonly factories?: FactorySource;
  /** Open text buffers of clients. */
  readonly buffers?: TextBufferPort;
  /** Resolves when expected clients have joined, or when waiting for them ends. */
  ready?(signal: AbortSignal): Promise<void>;
}

/** Memory options of a session. */
export interface MemoryRequest {
  /** The user's settings or environment can still disable it (default: they decide). */
  readonly enabled?: boolean;
  /** A fact store of the embedding program. */
  readonly store?: MemoryStore;
}

/** Selected GitHub tools, in the terms of the wire. */
export interface GithubToolsRequest {
  readonly enableAllTools?: boolean | undefined;
  readonly additionalToolsets?: readonly string[] | undefined;
  readonly additionalTools?: readonly string[] | undefined;
  readonly enableInsidersMode?: boolean | undefined;
}
