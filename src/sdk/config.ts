import type { EventData, SessionEvent } from "../protocol/event.ts";
import type { ClientTool } from "./define-tool.ts";
import type { SessionHooks } from "./hooks.ts";

type SessionReference = { readonly sessionId: string };
type MaybePromise<T> = T | Promise<T>;

/** The requested access. `kind` determines the other fields. */
export type PermissionRequest = EventData<"permission.requested">["permissionRequest"];

/** A program's answer to a permission request. `no-result` leaves it to another client of the session. */
export type PermissionDecision =
  | { readonly kind: "approve-once" }
  | { readonly kind: "approve-for-session"; readonly approval?: unknown; readonly domain?: string }
  | { readonly kind: "approve-for-location"; readonly approval: unknown; readonly locationKey: string }
  | { readonly kind: "approve-permanently"; readonly domain: string }
  | { readonly kind: "reject"; readonly feedback?: string }
  | { readonly kind: "user-not-available" }
  | { readonly kind: "no-result" };

export type PermissionHandler = (
  request: PermissionRequest,
  /** `agentId`: the agent that made the call. Absent for the main agent. */
  invocation: SessionReference & { readonly agentId?: string },
) => MaybePromise<PermissionDecision>;

/** Approves every request once. For programs that trust the model with this machine, and for tests. */
export const approveAll: PermissionHandler = () => ({ kind: "approve-once" });

export interface CustomAgent {
  readonly name: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly prompt: string;
  /** Absent or null: all tools of the session. */
  readonly tools?: readonly string[] | null;
  readonly mcpServers?: Readonly<Record<string, McpServer>>;
  /** False: used only on request, never by the model's own choice. */
  readonly infer?: boolean;
  readonly skills?: readonly string[];
  readonly model?: string;
  readonly reasoningEffort?: ReasoningEffort;
}

export type ReasoningEffort = "low" | "medium" | "high" | "xhigh" | "max";

export type McpServer =
  | {
      readonly type?: "local" | "stdio";
      readonly command: string;
      readonly args?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
      readonly tools?: readonly string[];
      readonly timeout?: number;
    }
  | {
      readonly type: "http" | "sse";
      readonly url: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly tools?: readonly string[];
      readonly timeout?: number;
    };

interface ProviderEndpoint {
  readonly type?: "openai" | "azure" | "anthropic";
  readonly wireApi?: "completions" | "responses";
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly bearerToken?: string;
  /** Called before each request. The token is not stored. */
  readonly bearerTokenProvider?: (
    request: { readonly providerName: string } & SessionReference,
  ) => MaybePromise<string>;
  readonly azure?: { readonly apiVersion?: string };
  readonly headers?: Readonly<Record<string, string>>;
}

/** One model provider for the whole session. */
export interface Provider extends ProviderEndpoint {
  readonly modelId?: string;
  readonly wireModel?: string;
  readonly maxPromptTokens?: number;
  readonly maxOutputTokens?: number;
}

export interface NamedProvider extends ProviderEndpoint {
  readonly name: string;
}

export interface ProviderModel {
  readonly id: string;
  readonly provider: string;
  readonly wireModel?: string;
  readonly modelId?: string;
  readonly name?: string;
  readonly maxPromptTokens?: number;
  readonly maxContextWindowTokens?: number;
  readonly maxOutputTokens?: number;
}

type SectionAction = "replace" | "remove" | "append" | "prepend" | "preserve";

export type SystemMessage =
  | { readonly mode?: "append"; readonly content?: string }
  | { readonly mode: "replace"; readonly content: string }
  | {
      readonly mode: "customize";
      readonly content?: string;
      /** A function receives the section's text and returns the new one. */
      readonly sections?: Readonly<
        Record<string, { readonly action: SectionAction | SectionTransform; readonly content?: string }>
      >;
    };
export type SectionTransform = (content: string) => MaybePromise<string>;

export interface UserInputRequest {
  readonly question: string;
  readonly choices?: readonly string[];
  readonly allowFreeform?: boolean;
}
export interface ElicitationRequest {
  readonly message: string;
  readonly requestedSchema?: unknown;
  readonly mode?: string;
  readonly url?: string;
  /** The MCP server that asks, if one does. */
  readonly elicitationSource?: string;
  /** The agent's call that caused the request. */
  readonly toolCallId?: string;
}
export interface ExitPlanRequest {
  readonly summary: string;
  readonly planContent?: string;
  readonly actions: readonly string[];
  readonly recommendedAction: string;
}
export interface SlashCommand {
  readonly name: string;
  readonly description?: string;
  readonly handler: (
    call: { readonly command: string; readonly args: string } & SessionReference,
  ) => MaybePromise<void>;
}

/** Options of a session. All are optional. */
export interface SessionConfig {
  readonly sessionId?: string;
  /** Sent to model providers in the User-Agent. */
  readonly clientName?: string;
  readonly model?: string;
  readonly reasoningEffort?: ReasoningEffort;
  readonly provider?: Provider;
  readonly providers?: readonly NamedProvider[];
  readonly models?: readonly ProviderModel[];
  readonly workingDirectory?: string;
  readonly additionalDirectories?: readonly string[];
  /** True: sends deltas such as `assistant.message_delta`. */
  readonly streaming?: boolean;

  readonly tools?: readonly ClientTool[];
  /** Names, or `builtin:x`, `mcp:x`, `custom:x`, with `*` after the colon. Exclusion wins. */
  readonly availableTools?: readonly string[];
  readonly excludedTools?: readonly string[];
  readonly mcpServers?: Readonly<Record<string, McpServer>>;
  readonly disabledMcpServers?: readonly string[];
  readonly commands?: readonly SlashCommand[];

  readonly customAgents?: readonly CustomAgent[];
  readonly customAgentsLocalOnly?: boolean;
  /** Hides tools from the default agent. Agents that list them, or that have no `tools` list, still have them. */
  readonly defaultAgent?: { readonly excludedTools?: readonly string[] };
  readonly excludedBuiltinAgents?: readonly string[];
  /** The main agent from the first message on. */
  readonly agent?: string;

  readonly systemMessage?: SystemMessage;
  readonly skillDirectories?: readonly string[];
  readonly disabledSkills?: readonly string[];
  readonly pluginDirectories?: readonly string[];
  readonly instructionDirectories?: readonly string[];
  /** True: uses the configuration of the folder and of the user. */
  readonly enableConfigDiscovery?: boolean;
  readonly memory?: { readonly enabled: boolean };
  readonly infiniteSessions?: {
    readonly enabled?: boolean;
    readonly backgroundCompactionThreshold?: number;
    readonly bufferExhaustionThreshold?: number;
  };
  readonly largeOutput?: { readonly enabled?: boolean; readonly maxSizeBytes?: number; readonly outputDir?: string };
  readonly gitHubToken?: string;

  readonly hooks?: SessionHooks;
  readonly onPermissionRequest?: PermissionHandler;
  readonly onUserInputRequest?: (
    request: UserInputRequest,
    invocation: SessionReference,
  ) => MaybePromise<{ answer: string; wasFreeform: boolean }>;
  readonly onElicitationRequest?: (
    request: ElicitationRequest,
    invocation: SessionReference,
  ) => MaybePromise<{ action: "accept" | "decline" | "cancel"; content?: Readonly<Record<string, unknown>> }>;
  readonly onExitPlanModeRequest?: (
    request: ExitPlanRequest,
    invocation: SessionReference,
  ) => MaybePromise<{ approved: boolean; selectedAction?: string; feedback?: string }>;
  readonly onAutoModeSwitchRequest?: (
    request: { readonly errorCode?: string; readonly retryAfterSeconds?: number },
    invocation: SessionReference,
  ) => MaybePromise<"yes" | "yes_always" | "no">;
  /** Editor texts of this program, saved or not. File tools use them instead of the files. Paths are real paths. */
  readonly textBuffers?: TextBuffers;
  /** Called for every event from the first one on. */
  readonly onEvent?: (event: SessionEvent) => void;
}

export interface TextBuffers {
  /** Returns undefined to use the file on disk. */
  read(path: string): MaybePromise<string | undefined>;
  /** Replaces a text that may not be saved. Return false to write the file on disk. */
  write(path: string, text: string): MaybePromise<boolean>;
}

export interface ResumeConfig extends Omit<SessionConfig, "sessionId"> {
  /** True: requests that were pending when the last client left can still be answered. */
  readonly continuePendingWork?: boolean;
}
