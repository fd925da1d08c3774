/** Options that a client may set for a session, and their conversion for the runtime. */
import { resolve } from "node:path";
import * as z from "zod";
import { SystemMessageConfig } from "../../context/system-message.ts";
import { defined } from "../../lib/defined.ts";
import type { TraceContext } from "../../lib/trace-context.ts";
import { OpenCanvas } from "../../protocol/canvas-events.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionRequest } from "../../runtime/session-request.ts";
import { factoryMeta } from "../clients/client-factories.ts";
import type { ClientProfile } from "../clients/clients.ts";
import { modelParams } from "../model-tunnel/model-options.ts";
import { unusedParams } from "./unused-options.ts";

const names = () => z.array(z.string()).optional();

export const ToolDefinition = () =>
  z.object({
    name: z.string().min(1),
    description: z.string().exactOptional(),
    parameters: z.record(z.string(), z.unknown()).exactOptional(),
    overridesBuiltInTool: z.boolean().exactOptional(),
    skipPermission: z.boolean().exactOptional(),
    isTerminal: z.boolean().exactOptional(),
    defer: z.enum(["auto", "never"]).exactOptional(),
  });

const CanvasDeclaration = () =>
  z.object({
    id: z.string().min(1).max(200),
    displayName: z.string().max(1000),
    description: z.string().max(10_000),
    icon: z.string().max(4096).exactOptional(),
    inputSchema: z.json().exactOptional(),
    actions: z
      .array(
        z.object({
          name: z.string().min(1).max(200),
          description: z.string().max(10_000).exactOptional(),
          inputSchema: z.json().exactOptional(),
        }),
      )
      .max(100)
      .exactOptional(),
  });

/** Options that apply to the client that sets them. */
const ofClient = () => ({
  tools: z.array(ToolDefinition()).optional(),
  commands: z.array(z.object({ name: z.string().min(1), description: z.string().optional() })).optional(),
  hooks: z.boolean().optional(),
  requestPermission: z.boolean().optional(),
  requestUserInput: z.boolean().optional(),
  requestElicitation: z.boolean().optional(),
  /** The client acquires GitHub tokens for the session on demand, under this name. */
  gitHubTokenProviderRegistrationId: z.string().min(1).max(200).optional(),
  requestExitPlanMode: z.boolean().optional(),
  requestAutoModeSwitch: z.boolean().optional(),
  /** The client holds editor texts: it receives `textBuffer.read` and `textBuffer.write` requests. */
  requestTextBuffers: z.boolean().optional(),
  includeSubAgentStreamingEvents: z.boolean().optional(),
  enableGitHubTelemetryForwarding: z.boolean().optional(),
  canvases: z.array(CanvasDeclaration()).max(100).optional(),
  requestCanvasRenderer: z.boolean().optional(),
  canvasProvider: z.object({ id: z.string().min(1).max(200), name: z.string().max(1000).optional() }).optional(),
  extensionInfo: z.object({ source: z.string().min(1).max(100), name: z.string().min(1).max(100) }).optional(),
});

/** Options of the session, for all its clients. */
export const sessionOptions = () => ({
  ...modelParams().shape,
  streaming: z.boolean().optional(),
  enableSessionTelemetry: z.boolean().optional(),
  systemMessage: SystemMessageConfig.optional(),
  workingDirectory: z.string().optional(),
  additionalDirectories: names(),
  // The Go SDK sends null for a list that is not set.
  availableTools: z.array(z.string()).nullish(),
  excludedTools: names(),
  toolSearch: z.object({ enabled: z.boolean().optional(), deferThreshold: z.number().optional() }).optional(),
  customAgents: z.array(z.record(z.string(), z.unknown())).optional(),
  excludedBuiltinAgents: names(),
  defaultAgent: z.object({ excludedTools: names() }).optional(),
  agent: z.string().optional(),
  mcpServers: z.record(z.string(), z.unknown()).optional(),
  disabledMcpServers: names(),
  githubMcpToolConfig: z
    .object({
      enableAllTools: z.boolean().optional(),
      additionalToolsets: names(),
      additionalTools: names(),
      enableInsidersMode: z.boolean().optional(),
    })
    .optional(),
  requestMcpApps: z.boolean().optional(),
  skillDirectories: names(),
  disabledSkills: names(),
  pluginDirectories: names(),
  instructionDirectories: names(),
  organizationCustomInstructions: z.string().optional(),
  skipCustomInstructions: z.boolean().optional(),
  enableConfigDiscovery: z.boolean().optional(),
  enableSkills: z.boolean().optional(),
  enableFileHooks: z.boolean().optional(),
  enableHostGitOperations: z.boolean().optional(),
  enableOnDemandInstructionDiscovery: z.boolean().optional(),
  enableSessionStore: z.boolean().optional(),
  infiniteSessions: z
    .object({
      enabled: z.boolean().optional(),
      backgroundCompactionThreshold: z.number().optional(),
      bufferExhaustionThreshold: z.number().optional(),
    })
    .optional(),
  largeOutput: z
    .object({
      enabled: z.boolean().optional(),
      maxSizeBytes: z.number().optional(),
      outputDir: z.string().optional(),
    })
    .optional(),
  memory: z.object({ enabled: z.boolean().optional() }).optional(),
  askUserVariant: z.enum(["legacy", "elicitation"]).optional(),
  includedBuiltinSkills: z.array(z.string()).nullish(),
  requestExtensions: z.boolean().optional(),
  extensionSdkPath: z.string().optional(),
});

/** Policies that cannot be enforced, and remote locations. Setting one is an error and never ignored. */
const refused = () => ({
  managedSettings: z.unknown().optional(),
  enableManagedSettings: z.boolean().optional(),
  cloud: z.unknown().optional(),
});

/** The trace context of a client's request. */
export const traceParams = () => ({ traceparent: z.string().optional(), tracestate: z.string().optional() });

export function traceOf(params: z.infer<z.ZodObject<ReturnType<typeof traceParams>>>): TraceContext | undefined {
  const { traceparent, tracestate } = params;
  return traceparent === undefined ? undefined : { traceparent, ...defined({ tracestate }) };
}

export const createParams = () =>
  z.object({
    sessionId: z.string().optional(),
    ...ofClient(),
    ...sessionOptions(),
    ...refused(),
    ...unusedParams(),
    ...traceParams(),
  });
export type CreateParams = z.infer<ReturnType<typeof createParams>>;

export const resumeParams = () =>
  createParams().extend({
    sessionId: z.string(),
    disableResume: z.boolean().optional(),
    continuePendingWork: z.boolean().optional(),
    openCanvases: z.array(OpenCanvas).max(100).optional(),
    /** For extensions alone. */
    factories: z.array(factoryMeta()).max(200).optional(),
    workflows: z.array(factoryMeta()).max(200).optional(),
    requestedEnvironmentVariables: z.array(z.string().min(1).max(200)).max(100).optional(),
  });
export type ResumeParams = z.infer<ReturnType<typeof resumeParams>>;

/** The session options that are set. Later ones replace earlier ones. */
export type OptionsOfSession = Partial<z.infer<z.ZodObject<ReturnType<typeof sessionOptions>>>>;

export function optionsOf(params: OptionsOfSession): OptionsOfSession {
  const known = Object.keys(sessionOptions());
  return Object.fromEntries(
    Object.entries(params).filter(([name, value]) => value !== undefined && known.includes(name)),
  );
}

export function requireServable({ managedSettings, enableManagedSettings, cloud }: CreateParams): void {
  if (managedSettings !== undefined || enableManagedSettings) {
    throw new TroupeError("usage", "The session was not opened: this server cannot enforce managed settings.", {
      hint: "Put rules into troupe's own settings, or leave the option out.",
    });
  }
  if (cloud !== undefined && cloud !== null) {
    throw new TroupeError("usage", "This server has no cloud sessions.", { hint: "Leave `cloud` out." });
  }
}

/** Paths that an organisation excludes. They cannot be enforced, so that naming some is an error. */
export const exclusionParams = () => ({ additionalContentExclusionPolicies: z.array(z.unknown()).optional() });

export function requireNoExclusions(params: z.infer<z.ZodObject<ReturnType<typeof exclusionParams>>>): void {
  if ((params.additionalContentExclusionPolicies ?? []).length === 0) return;
  throw new TroupeError("usage", "Nothing was changed: this server cannot enforce content exclusion policies.", {
    hint: "Deny the paths by rules (session.permissions.configure), or leave the option out.",
  });
}

type CompactionRequest = NonNullable<NonNullable<SessionRequest["context"]>["compaction"]>;

/** The protocol's default limit. */
const LARGE_OUTPUT_BYTES = 51_200;

export function sessionRequest(options: OptionsOfSession, defaults: SessionRequest): SessionRequest {
  const cwd = options.workingDirectory === undefined ? defaults.cwd : resolve(defaults.cwd, options.workingDirectory);
  const { streaming = false } = options;
  const { outputDir } = options.largeOutput ?? {};
  return {
    ...defaults,
    cwd,
    model: { ...defaults.model, streaming },
    // Clients decide about everything that no rule decides, including reads.
    permissions: { askReads: true, ...defaults.permissions, paths: pathsOf(options, { ...defaults, cwd }) },
    tools: {
      ...defaults.tools,
      choice: toolChoiceOf(options, defaults),
      search: defined({ enabled: options.toolSearch?.enabled, threshold: options.toolSearch?.deferThreshold }),
      outputBytes: largeOutputOf(options),
      ...(options.enableConfigDiscovery && { github: options.githubMcpToolConfig ?? {} }),
      ...(outputDir !== undefined && { outputFolder: resolve(cwd, outputDir) }),
    },
    context: contextOf(options, defaults),
    agents: { ...defaults.agents, ...defined({ main: options.agent }) },
    client: {
      ...defaults.client,
      ...defined({ askUserVariant: options.askUserVariant }),
      mcpApps: options.requestMcpApps ?? false,
      ...(options.requestExtensions && { extensions: defined({ sdkPath: sdkPathOf(options, cwd) }) }),
    },
    workspace: workspaceOf(options, { ...defaults, cwd }),
  };
}

function contextOf(
  options: OptionsOfSession,
  { context = {} }: SessionRequest,
): NonNullable<SessionRequest["context"]> {
  const { systemMessage, organizationCustomInstructions: organizationInstructions, includedBuiltinSkills } = options;
  return {
    ...context,
    ...defined({ systemMessage, organizationInstructions, builtinSkills: includedBuiltinSkills ?? undefined }),
    compaction: compactionOf(options),
    memory: { ...context.memory, ...defined({ enabled: options.memory?.enabled }) },
    git: options.enableHostGitOperations ?? true,
    nestedInstructions: options.enableOnDemandInstructionDiscovery ?? true,
    sessionStore: options.enableSessionStore ?? true,
  };
}

function pathsOf({ additionalDirectories = [] }: OptionsOfSession, { permissions, cwd }: SessionRequest) {
  const { paths = [] } = permissions ?? {};
  if (paths === "all") return paths;
  return [...paths, ...additionalDirectories.map((path) => resolve(cwd, path))];
}

function toolChoiceOf(options: OptionsOfSession, { tools }: SessionRequest) {
  const { choice: toolChoice = {} } = tools ?? {};
  const { availableTools, excludedTools = [], defaultAgent } = options;
  return {
    ...toolChoice,
    ...defined({ available: availableTools ?? toolChoice.available }),
    excluded: [...(toolChoice.excluded ?? []), ...excludedTools],
    hiddenFromMain: [...(toolChoice.hiddenFromMain ?? []), ...(defaultAgent?.excludedTools ?? [])],
  };
}

function workspaceOf(
  options: OptionsOfSession,
  { workspace = {}, cwd }: SessionRequest,
): NonNullable<SessionRequest["workspace"]> {
  const below = (paths: readonly string[] = []): string[] => paths.map((path) => resolve(cwd, path));
  return {
    ...workspace,
    extensions: options.requestExtensions ?? false,
    discovery: options.enableConfigDiscovery ? "all" : "given",
    skills: options.enableSkills ?? true,
    fileHooks: options.enableFileHooks ?? false,
    pluginDirectories: [...(workspace.pluginDirectories ?? []), ...below(options.pluginDirectories)],
    skillDirectories: below(options.skillDirectories),
    instructionDirectories: below(options.instructionDirectories),
    disabledSkills: options.disabledSkills ?? [],
    disabledMcpServers: [...(workspace.disabledMcpServers ?? []), ...(options.disabledMcpServers ?? [])],
    excludedBuiltinAgents: options.excludedBuiltinAgents ?? [],
    agents: options.customAgents ?? [],
    ...defined({ mcpServers: options.mcpServers }),
    ...(options.skipCustomInstructions && { customInstructions: false }),
  };
}

const sdkPathOf = ({ extensionSdkPath: path }: OptionsOfSession, cwd: string): string | undefined =>
  path === undefined ? undefined : resolve(cwd, path);

function compactionOf({ infiniteSessions = {} }: OptionsOfSession): CompactionRequest {
  return defined({
    enabled: infiniteSessions.enabled,
    backgroundThreshold: infiniteSessions.backgroundCompactionThreshold,
    bufferThreshold: infiniteSessions.bufferExhaustionThreshold,
  });
}

function largeOutputOf({ largeOutput = {} }: OptionsOfSession): number {
  if (largeOutput.enabled === false) return Number.MAX_SAFE_INTEGER;
  return largeOutput.maxSizeBytes ?? LARGE_OUTPUT_BYTES;
}

export function clientProfile(params: CreateParams | ResumeParams): ClientProfile {
  const { tools, commands, canvases, canvasProvider, extensionInfo, systemMessage, provider, providers = [] } = params;
  return {
    tools,
    commands,
    canvases,
    canvasProvider:
      canvasProvider ??
      (extensionInfo && { id: `${extensionInfo.source}:${extensionInfo.name}`, name: extensionInfo.name }),
    wantsTelemetry: params.enableGitHubTelemetryForwarding ?? false,
    rendersCanvases: params.requestCanvasRenderer ?? false,
    openCanvases: "openCanvases" in params ? params.openCanvases : undefined,
    hooks: params.hooks ?? false,
    requestUserInput: params.requestUserInput ?? false,
    requestElicitation: params.requestElicitation ?? false,
    requestExitPlanMode: params.requestExitPlanMode ?? false,
    requestAutoModeSwitch: params.requestAutoModeSwitch ?? false,
    holdsTexts: params.requestTextBuffers ?? false,
    subAgentDeltas: params.includeSubAgentStreamingEvents ?? true,
    givesTokens: [provider, ...providers].some((one) => one?.hasBearerTokenProvider === true),
    transforms:
      systemMessage?.mode === "customize" &&
      Object.values(systemMessage.sections ?? {}).some(({ action }) => action === "transform"),
  };
}
