/**
 * Equips the agents of a session: tools, model, prompt and working directory. This folder sets up agents, sidekicks and
 * factories, and reads their state from the log.
 */

import type { AgentDefinition } from "../../agents/agent.ts";
import { effectiveEffort } from "../../agents/effective-model.ts";
import { effectiveTools } from "../../agents/effective-tools.ts";
import { type AgentSettings, agentSettings } from "../../catalog/agents/agents-settings.ts";
import { skillContext } from "../../context/skills/load-skill.ts";
import { type PromptRequest, promptParts } from "../../context/system-prompt.ts";
import { defined } from "../../lib/defined.ts";
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { UNDERSTUDY } from "../../model/catalog.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Flag } from "../../protocol/flags.ts";
import type { AgentPoolOptions, ResolveAgentRequest, ResolvedAgent } from "../../session/agents/agent-pool-options.ts";
import type { AgentSetup, AgentTask } from "../../session/agents/agent-run.ts";
import { modelReference } from "../../session/model-selection.ts";
import type { SessionModel } from "../../session/session-model.ts";
import type { GivenSubagents } from "../../session/session-options.ts";
import type { Tool } from "../../tools/tool.ts";
import type { AgentServers } from "../mcp/agent-servers.ts";
import { chooseModel } from "../models/agent-model.ts";
import type { Models } from "../models/models.ts";
import type { AgentHost } from "../session-request.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { type AgentLimitParts, agentLimits, type TaskLimitSettings } from "./agent-limits.ts";
import { type SidekickCondition, sidekickOptions } from "./sidekicks.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Settings = Workspace["settings"]["effective"];

/** An agent's working directory with its own ports, which are released with it. */
export interface AgentWorkspace extends Pick<AgentSetup, "cwd" | "roots" | "policy" | "ports" | "replaceEnd"> {
  /** Addition to the agent's system prompt. */
  readonly system?: string;
  /** Notes for the agent about its workspace. */
  readonly notes?: readonly string[];
  release(): Promise<void>;
}

export interface AgentPoolParts {
  readonly environment: Environment;
  readonly workspace: Workspace;
  readonly models: Pick<Models, "resolve" | "list">;
  /** The session's current model. */
  mainModel(): SessionModel;
  mainEffort?(): string | undefined;
  readonly prompt: Omit<PromptRequest, "tools" | "instructions">;
  /** Memories for agents whose prompt includes the environment. They can read but not add any. */
  memories?(): string;
  agents(): readonly AgentDefinition[];
  /** A client's current settings for agents of this session. */
  given?(): GivenSubagents;
  /** All tools of the session; the main agent may have fewer. */
  sessionTools(): readonly Tool[];
  /** The part of `sessionTools` that an agent without a tool list has (default: all). */
  inheritedTools?(): readonly Tool[];
  /** The model with which the user wants to resume a task, in place of the recorded one. */
  modelOverride?(task: AgentTask): SessionModel | undefined;
  workspaceFor(task: AgentTask): Promise<AgentWorkspace>;
  /** Starts the MCP servers that an agent's definition brings. `reservedNames` are already used by other tools. */
  serversFor?(definition: AgentDefinition, reservedNames: readonly string[]): Promise<AgentServers | undefined>;
  /** The folder of worktrees; undefined outside of a repository. */
  readonly worktrees?: string | undefined;
  /** Builds the way to other workers, for a session that runs on one. */
  remoteAgents?(own: Pick<AgentHost, "limits" | "tools">): AgentPoolOptions["remoteAgents"];
  /** Conditions under which built-in sidekicks start. */
  readonly conditions?: ReadonlyMap<string, SidekickCondition>;
  /** The plan of the session's GitHub account; undefined without one. */
  readonly accountPlan?: AgentLimitParts["accountPlan"];
  readonly most?: AgentLimitParts["most"];
  warn(message: string): void;
}

export function agentPoolOptions(parts: AgentPoolParts, known?: TaskLimitSettings): AgentPoolOptions {
  const { workspace } = parts;
  const settings = workspace.settings.effective;
  const own = known ?? agentLimits({ ...parts, settings });
  const { limits, ready } = own;
  const modelFor = async (name: string): Promise<SessionModel> => {
    const main = parts.mainModel();
    return name === modelReference(main) ? main : parts.models.resolve(name);
  };
  const nested = new Map<string, ReturnType<Workspace["instructions"]["nestedFor"]>>();
  /** Loads nested instructions once per agent, not once per turn. */
  const discover = ({ id, spec }: AgentTask, { cwd }: Pick<AgentWorkspace, "cwd">, path: string) => {
    const own = nested.get(id) ?? workspace.instructions.nestedFor(spec.worktree === undefined ? undefined : cwd);
    nested.set(id, own);
    return own.onFileAccess(path);
  };
  const remoteAgents = parts.remoteAgents?.({
    limits,
    tools: (task) => toolsOf(task, parts.sessionTools(), limits.maxDepth).map(({ name }) => name),
  });
  return {
    limits,
    multiTurn: workspace.flags.has("MULTI_TURN_AGENTS"),
    sessionBased: workspace.flags.has("SESSION_BASED_SUBAGENTS"),
    mcpTasks: workspace.flags.has("MCP_TASKS"),
    agents: parts.agents,
    remoteAgents,
    workersRefused: () => workersRefused(parts.mainModel()),
    sidekicks: sidekickOptions(parts, (more) => agentPoolOptions({ ...parts, ...more }, own)),
    async resolveAgent(request) {
      await ready();
      return resolveAgent(request, { parts, settings, modelFor, remoteAgents });
    },
    async agentSetup(task, definition) {
      await ready();
      const model =
        parts.modelOverride?.(task) ?? (await modelFor(task.spec.model ?? modelReference(parts.mainModel())));
      const given = toolsOf(task, parts.sessionTools(), limits.maxDepth);
      const skills = await preload(definition, parts);
      const { notes = [], system = "", ...rest } = await parts.workspaceFor(task);
      const names = parts.sessionTools().map(({ name }) => name);
      const servers = await parts.serversFor?.(definition, names);
      const tools = [...given, ...(servers?.tools ?? [])];
      const prelude = [...notes, skills].filter(Boolean).join("\n\n");
      const effort = effortOf(definition, { parts, settings, model, call: task.spec.reasoningEffort });
      return {
        ...rest,
        release: async () => {
          await rest.release();
          await servers?.close();
        },
        model,
        promptAndTools: { system: joined(agentSystem({ definition, ...parts, tools, cwd: rest.cwd }), system), tools },
        ...(prelude !== "" && { prelude }),
        ...(definition.includeCustomInstructions && { discover: (path) => discover(task, rest, path) }),
        ...defined({ reasoningEffort: effort }),
      };
    },
  };
}

/**
 * Returns why workers are refused, if they are. They need a provider that calls tools over one of the wires; the
 * understudy works by its own rules.
 */
function workersRefused({ providerId, absent }: SessionModel): string | undefined {
  if (providerId !== UNDERSTUDY && !absent) return undefined;
  const name = absent ? `a model that is not available (${absent.why})` : `the provider ${UNDERSTUDY}`;
  return `subagents_run does not support ${name}. Use an OpenAI-compatible, Anthropic or Gemini model.`;
}

async function resolveAgent(
  request: ResolveAgentRequest,
  context: {
    parts: AgentPoolParts;
    settings: Settings;
    modelFor(name: string): Promise<SessionModel>;
    remoteAgents: AgentPoolOptions["remoteAgents"];
  },
): Promise<ResolvedAgent> {
  const { definition } = request;
  const { parts, settings, modelFor, remoteAgents } = context;
  const parentTools = request.parentTools ?? toolsFor(definition, parts).map(({ name }) => name);
  const sessionTools = new Map(parts.sessionTools().map((tool) => [tool.name, tool]));
  const effective = effectiveTools(definition, parentTools, { traitsOf: (name) => sessionTools.get(name) });
  // Removed here, so that agents started by this one do not get it either.
  const tools = effective.tools.filter((name) => name !== SKILL || definition.tools?.includes(SKILL) === true);
  // Tools of its own servers are known only when they are connected.
  const servers = Object.keys(definition.mcpServers ?? {});
  const unknown = effective.unknown.filter((tool) => !servers.some((server) => tool.startsWith(`${server}-`)));
  const warnings: string[] = [];
  if (unknown.length > 0) {
    const why = definition.sidekick
      ? "a sidekick cannot have, or that do not exist in this session"
      : "do not exist in this session";
    warnings.push(`The agent ${definition.name} lists tools that ${why}: ${unknown.join(", ")}.`);
  }
  const requested = requestedSettings(definition, context);
  const parent = request.parentModel ?? modelReference(parts.mainModel());
  const chosen = await chooseModel(
    { definition, parent, call: request.model, settings: requested.model },
    { models: parts.models, main: parts.mainModel(), maxCostRatio: settings.subagents?.maxCostRatio, modelFor },
  );
  const { model } = chosen;
  warnings.push(...chosen.warnings);
  const refusal = await placementRefusal(request, remoteAgents);
  if (refusal?.reason !== undefined)
    warnings.push(`The agent ${definition.name} runs on this worker: ${refusal.reason}.`);
  const isRemote = refusal !== undefined && refusal.reason === undefined;
  const worktree = isRemote ? undefined : request.isolation && parts.worktrees;
  if (request.isolation && worktree === undefined && !isRemote) {
    throw new TroupeError("usage", "`isolation: worktree` needs a git repository, and this folder is not in one.", {
      hint: "Run git init and commit, or remove isolation from the agent or the call.",
    });
  }
  for (const warning of warnings) parts.warn(warning);
  return { tools, model, warnings, ...defined({ worktree }), ...(isRemote && { placement: "elsewhere" }) };
}

/** Returns undefined for an agent that is to run here, else the reason why it must, if there is one. */
async function placementRefusal(
  { definition, isolation }: ResolveAgentRequest,
  remoteAgents: AgentPoolOptions["remoteAgents"],
): Promise<{ readonly reason: string | undefined } | undefined> {
  const placement = definition.placement ?? (isolation ? "elsewhere" : "here");
  if (!remoteAgents || placement === "here") return undefined;
  return { reason: await remoteAgents.refusal(definition) };
}

/** Returns the tools that an agent of the main agent can have, including those hidden from the default agent. */
function toolsFor({ tools }: AgentDefinition, parts: AgentPoolParts): readonly Tool[] {
  return tools === null ? (parts.inheritedTools?.() ?? parts.sessionTools()) : parts.sessionTools();
}

/** Returns the tools of a task. At the nesting limit, tools that manage agents are removed. */
function toolsOf(task: AgentTask, sessionTools: readonly Tool[], maxDepth: number): readonly Tool[] {
  const isDeepest = task.spec.depth >= maxDepth;
  return sessionTools.filter(
    ({ name, needs, mainOnly, managesAgents }) =>
      (task.tools === null || task.tools.includes(name)) && !needs && !mainOnly && !(isDeepest && managesAgents),
  );
}

/** Skills are not inherited: an agent gets the skills it lists. It can look for others only if it lists this tool. */
const SKILL = "skill";

/** Settings for an agent, in order of precedence: the session's client, the user's settings, feature flags. */
function requestedSettings(
  definition: AgentDefinition,
  how: { parts: AgentPoolParts; settings: Settings },
): AgentSettings {
  const { parts, settings } = how;
  const own = {
    ...agentSettings(definition, settings.subagents?.agents ?? {}),
    ...agentSettings(definition, parts.given?.().agents ?? {}),
  };
  const flagged = definition.source === "builtin" ? FLAGGED.get(definition.name) : undefined;
  return flagged && parts.workspace.flags.has(flagged.flag) ? { ...flagged.settings, ...own } : own;
}

const FRUGAL: AgentSettings = { model: "small", reasoningEffort: "low" };
const FLAGGED: ReadonlyMap<string, { readonly flag: Flag; readonly settings: AgentSettings }> = new Map([
  ["explore", { flag: "EXPLORE_SMALL_MODEL", settings: FRUGAL }],
  ["subconscious-agent", { flag: "COPILOT_SUBCONSCIOUS", settings: FRUGAL }],
  ["github-context", { flag: "GITHUB_CONTEXT_SIDEKICK_AGENT", settings: FRUGAL }],
  ["rubber-duck", { flag: "RUBBER_DUCK_OTHER_FAMILY", settings: { model: "complementary" } }],
]);

async function preload(definition: AgentDefinition, { workspace, warn }: AgentPoolParts): Promise<string> {
  if (definition.skills.length === 0) return "";
  const { text, missing } = await skillContext(definition.skills, workspace.skills);
  for (const { name, reason } of missing) warn(`The agent ${definition.name} names the skill ${name}: ${reason}`);
  return text;
}

function effortOf(
  definition: AgentDefinition,
  context: { parts: AgentPoolParts; settings: Settings; model: SessionModel; call: string | undefined },
): NonNullable<AgentSetup["reasoningEffort"]> | undefined {
  const { parts, settings, model, call } = context;
  const wished = requestedSettings(definition, { parts, settings }).reasoningEffort;
  const mainEffort = parts.mainEffort?.();
  const effort = effectiveEffort({
    definition,
    parent: {
      model: modelReference(parts.mainModel()),
      ...defined({ effort: mainEffort }),
    },
    model: modelReference(model),
    ...defined({ settings: wished }),
    ...(efforts.some((known) => known === call) && { call: call ?? "" }),
  });
  return efforts.find((known) => known === effort);
}

const efforts = ["low", "medium", "high", "xhigh", "max"] as const;

/** Returns the agent's own prompt, followed by the sections of ours that it includes. */
export function agentSystem(
  parts: Pick<AgentPoolParts, "workspace" | "prompt" | "memories"> & {
    readonly definition: AgentDefinition;
    readonly tools: readonly Tool[];
    readonly cwd: string;
  },
): string {
  const { definition, workspace, prompt, tools, cwd } = parts;
  const names = tools.map(({ name }) => name);
  const sections = promptParts({ ...prompt, context: { ...prompt.context, cwd }, tools: names });
  const wanted: Record<(typeof definition.promptParts)[number], string | undefined> = {
    environment: sections.environment_context,
    safety: sections.safety,
    tools: sections.tool_instructions,
    parallel: sections.tool_efficiency,
  };
  // Custom prompts are quoted, so that they cannot open or close our tags.
  const own =
    definition.source === "builtin"
      ? definition.prompt
      : wrapInTag("agent_instructions", {}, quoted(definition.prompt));
  return joined(
    own,
    ...definition.promptParts.map((part) => wanted[part]),
    definition.includeCustomInstructions ? workspace.instructions.text : undefined,
    definition.promptParts.includes("environment") ? parts.memories?.() : undefined,
  );
}

const joined = (...texts: readonly (string | undefined)[]): string => texts.filter(Boolean).join("\n\n");
