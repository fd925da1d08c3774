/** The request for a session: every option a surface can set. */

import type { SessionMode } from "../commands/command.ts";
import type { MemoryStore } from "../context/memory/memory.ts";
import type { SectionTransform } from "../context/sections.ts";
import type { SystemMessageConfig } from "../context/system-message.ts";
import type { FactorySource } from "../factories/ports.ts";
import type { HookPoint } from "../hooks/points.ts";
import type { Json } from "../lib/json.ts";
import type { GivenProviders, ModelCapabilities } from "../model/given-providers.ts";
import type { ModelFetch } from "../model/wire/place.ts";
import type { OpenSocket } from "../model/wire/transport/socket.ts";
import type { Limits } from "../session/budget/budget.ts";
import type { CompactionOptions } from "../session/compaction/compaction-options.ts";
import type { ExternalTools } from "../session/requests/external-tools.ts";
import type { SessionOptions } from "../session/session.ts";
import type { TextBuffers } from "../tools/text-buffers.ts";
import type { PermissionRequest } from "./permissions/policy.ts";
import type { ToolChoice } from "./setup/tool-choice.ts";
import type { WorkspaceRequest } from "./workspace/workspace.ts";

export interface SessionRequest {
  readonly cwd: string;
  /** See `troupe --help`, Model. */
  readonly model?: string;
  readonly name?: string;
  readonly limits?: Limits;
  readonly streaming?: boolean;
  readonly reasoningEffort?: SessionOptions["reasoningEffort"];
  readonly reasoningSummary?: SessionOptions["reasoningSummary"];
  /** How replies travel where nobody watches the words arrive; streamed unless told. */
  readonly replies?: "streamed" | "whole";
  /** What it may cost, in AI credits of a cent each: told to the agent, and held where the model's price is known. */
  readonly credits?: number;
  /** Say with each prompt when it was taken up. */
  readonly datesPrompts?: boolean;
  /** Ask for the places in documents that answers rest on. */
  readonly citations?: boolean;
  /** Providers and models that the program brings, in the place of what is configured or beside it. */
  readonly providers?: GivenProviders;
  /** What is said of the session's model outranks what its provider says. */
  readonly modelCapabilities?: ModelCapabilities;
  /** The program that speaks to the session; named to providers. */
  readonly clientName?: string;
  /** Reaches the network in its place, for everything that concerns this session's models. */
  readonly modelFetch?: ModelFetch;
  /** And opens WebSockets there. */
  readonly modelSocket?: OpenSocket;
  /** False: models of GitHub are not spoken to over WebSockets. */
  readonly githubSockets?: boolean;
  /** The session's own identity on GitHub; refused when it is not good. */
  readonly githubToken?: string;
  /** The MCP server of GitHub is used, where the session is somebody there. */
  readonly githubTools?: GithubToolsWish;
  /** Folders beside `cwd` that tools may reach, or "all". */
  readonly paths?: readonly string[] | "all";
  readonly toolChoice?: ToolChoice;
  /** The agent that leads the session from its first message on; `default` is nobody. */
  readonly agent?: string;
  /** False: what agents have to tell waits until the main agent is spoken to. */
  readonly wakes?: boolean;
  readonly permissions?: PermissionRequest;
  /** What the folder brings, and what is used beside it. */
  readonly workspace?: WorkspaceRequest;
  /** How far the agent goes by itself, at the start. */
  readonly mode?: SessionMode;
  /** False: the main agent works alone. */
  readonly delegation?: boolean;
  /** How long a session that is done waits for agents in the background. */
  readonly waitForAgentsMs?: number;
  /** Waits for new MCP servers until each is connected or has failed: there is no later message for their tools. */
  readonly waitForServers?: boolean;
  /** False: the model may not ask questions. */
  readonly askUser?: boolean;
  /** How the model asks questions: one with choices, or a form with fields. */
  readonly askUserVariant?: "legacy" | "elicitation";
  /** Only these of the skills that come with troupe. */
  readonly builtinSkills?: readonly string[];
  readonly systemMessage?: SystemMessageConfig;
  /** Whether facts are remembered between sessions; left out, the person's settings decide. */
  readonly memory?: MemoryRequest;
  /** Tool output beyond this many bytes goes to a file. */
  readonly largeOutputBytes?: number;
  /** Into this folder, absolute; left out, into the session's own. */
  readonly largeOutputFolder?: string;
  /** When the conversation is summarised; what is left out is as usual. */
  readonly compaction?: Partial<CompactionOptions>;
  readonly toolSearch?: { readonly enabled?: boolean; readonly threshold?: number };
  /** What holds for everybody in the organisation of the person; part of the system prompt. */
  readonly organizationInstructions?: string;
  /** False: what git knows of the folder is not looked at. */
  readonly git?: boolean;
  /** False: instructions that lie deeper in the folder are not told when the agent gets there. */
  readonly nestedInstructions?: boolean;
  /** False: the agent cannot query past sessions. */
  readonly sessionStore?: boolean;
  /** The program shows apps of MCP servers, and they are told so. */
  readonly mcpApps?: boolean;
  readonly program?: SessionProgram;
  /** A client asks for extensions; `sdkPath` is where theirs is. */
  readonly extensions?: { readonly sdkPath?: string };
  /** For a session that is taken up again: what its log is told of that. */
  readonly resumed?: SessionOptions["resumed"];
  /** Calls that waited for someone outside when the session was left are gone on with, by `Session.goOn`. */
  readonly continuesPending?: boolean;
  /** How long a process that holds the session and does nothing with it may take to let go of it. */
  readonly patienceMs?: number;
  /** The session whose learnings this one puts on the context board; only then may `rem-agent` lead. */
  readonly detachedFrom?: string;
}

export interface HookListener {
  /** For people, where it fails. */
  readonly name: string;
  /** Whose it is: what an extension says counts for as much as hooks of whoever brought it; a client's by itself. */
  readonly owner?: "user" | "project";
  /** What it resolves with is what a hook of that kind may say; nothing is no opinion. */
  invoke(hookType: HookPoint, input: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<unknown>;
}

/** What client programs do for a session. All of it may change while the session is open. */
export interface SessionProgram {
  /** Tools they run. */
  readonly tools?: ExternalTools;
  /** Those who are told of every moment that hooks are told of. */
  hooks?(): readonly HookListener[];
  /** Asked for sections of the system prompt that are to be transformed, whenever it is made anew. */
  readonly transform?: SectionTransform;
  /** Workflows they bring. */
  readonly factories?: FactorySource;
  /** Texts they hold open. */
  readonly buffers?: TextBuffers;
  /** Until those who are about to join have joined, or nobody waits for them any longer. */
  ready?(signal: AbortSignal): Promise<void>;
}

/** What a session asks for of the memory. */
export interface MemoryRequest {
  /** Unless a person's settings or environment say no; left out, they decide. */
  readonly enabled?: boolean;
  /** Facts that the embedding program keeps itself. */
  readonly store?: MemoryStore;
}

/** What of it a program wants, in the words of the wire. */
export interface GithubToolsWish {
  readonly enableAllTools?: boolean | undefined;
  readonly additionalToolsets?: readonly string[] | undefined;
  readonly additionalTools?: readonly string[] | undefined;
  readonly enableInsidersMode?: boolean | undefined;
}
