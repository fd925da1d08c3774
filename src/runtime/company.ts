/** What agents of a session are given: a part of what the session has, on a model of their own where they ask for one. */
import type { AgentDefinition } from "../agents/agent.ts";
import { effectiveEffort, effectiveModel } from "../agents/effective-model.ts";
import { effectiveTools } from "../agents/effective-tools.ts";
import { agentSettings } from "../catalog/agents-settings.ts";
import { quoted, wrapped } from "../context/quoting.ts";
import { skillContext } from "../context/skills/load-skill.ts";
import { type PromptRequest, promptParts } from "../context/system-prompt.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Outfit } from "../session/agent-run.ts";
import type { Cast, CastRequest, CompanyOptions } from "../session/company.ts";
import type { SessionModel } from "../session/start-run.ts";
import type { TaskRecord } from "../tasks/task-record.ts";
import type { Tool } from "../tools/tool.ts";
import type { Models } from "./models.ts";
import type { Workspace } from "./workspace.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Settings = Workspace["settings"]["effective"];

/** Where an agent works, with hands of its own that end with it. */
export interface AgentPlace extends Pick<Outfit, "cwd" | "roots" | "policy" | "ports"> {
  /** What the agent must know of the place. */
  readonly notes?: readonly string[];
  release(): Promise<void>;
}

export interface CompanyParts {
  readonly environment: Environment;
  readonly workspace: Workspace;
  readonly models: Models;
  readonly mainModel: SessionModel;
  readonly mainEffort?: string | undefined;
  readonly prompt: Omit<PromptRequest, "tools" | "instructions">;
  agents(): readonly AgentDefinition[];
  /** Everything the session has; the main agent may have less. */
  sessionTools(): readonly Tool[];
  /** What of it the main agent has, unless told otherwise everything. */
  mainTools?(): readonly Tool[];
  placeFor(task: TaskRecord): Promise<AgentPlace>;
  /** The folder of work trees, where there is a repository to make them from. */
  readonly worktrees?: string | undefined;
  warn(message: string): void;
}

export const MAX_DEPTH = 6;
export const MAX_CONCURRENCY = 32;

export function companyOptions(parts: CompanyParts): CompanyOptions {
  const { workspace, mainModel } = parts;
  const settings = workspace.settings.effective;
  const limits = taskLimits(parts.environment, settings);
  const resolved = new Map<string, Promise<SessionModel>>([[nameOf(mainModel), Promise.resolve(mainModel)]]);
  const modelFor = (name: string): Promise<SessionModel> => {
    const known = resolved.get(name) ?? parts.models.resolve(name);
    resolved.set(name, known);
    return known;
  };
  return {
    limits,
    multiTurn: parts.environment.TROUPE_MULTI_TURN_AGENTS !== "off",
    agents: parts.agents,
    cast: (request) => cast(request, { parts, settings, modelFor }),
    async outfit(task, definition) {
      const model = await modelFor(task.spec.model ?? nameOf(mainModel));
      const tools = toolsOf(task, parts.sessionTools(), limits.maxDepth);
      const skills = await preload(definition, parts);
      const { notes = [], ...rest } = await parts.placeFor(task);
      const prelude = [...notes, skills].filter(Boolean).join("\n\n");
      const effort = effortOf(definition, { parts, settings, model });
      return {
        ...rest,
        model,
        offer: { system: systemOf({ definition, parts, tools, cwd: rest.cwd }), tools },
        ...(prelude !== "" && { prelude }),
        ...(effort !== undefined && { reasoningEffort: effort }),
      };
    },
  };
}

/** The model by the name under which it can be found again. */
function nameOf({ providerId, model }: SessionModel): string {
  return `${providerId}/${model}`;
}

async function cast(
  request: CastRequest,
  how: { parts: CompanyParts; settings: Settings; modelFor(name: string): Promise<SessionModel> },
): Promise<Cast> {
  const { definition } = request;
  const { parts, settings, modelFor } = how;
  const parentTools = request.parentTools ?? toolsOfMain(definition, parts).map(({ name }) => name);
  const { tools, unknown } = effectiveTools(definition, parentTools, {
    isReadOnly: (name) => parts.sessionTools().some((tool) => tool.name === name && tool.readOnly),
  });
  const warnings: string[] = [];
  if (unknown.length > 0) {
    warnings.push(`The agent ${definition.name} names tools that are not there: ${unknown.join(", ")}.`);
  }
  const wished = agentSettings(definition, settings.subagents?.agents ?? {});
  const parent = request.parentModel ?? nameOf(parts.mainModel);
  const answer = effectiveModel({
    definition,
    parent,
    ...(request.model !== undefined && { call: request.model }),
    ...(wished.model !== undefined && { settings: wished.model }),
  });
  if ("refused" in answer) throw new TroupeError("usage", answer.refused);
  if (answer.warning !== undefined) warnings.push(answer.warning);
  const model = await usable(answer, { definition, parent, modelFor, warnings });
  const worktree = request.isolation && parts.worktrees;
  if (request.isolation && worktree === undefined) {
    throw new TroupeError("usage", "A work tree of its own needs a git repository, and this folder is in none.");
  }
  for (const warning of warnings) parts.warn(warning);
  return { tools, model, warnings, ...(worktree !== undefined && { worktree }) };
}

/** What is hidden from the main agent is there for an agent that lists it, and for no other. */
function toolsOfMain({ tools }: AgentDefinition, parts: CompanyParts): readonly Tool[] {
  return tools === null ? (parts.mainTools?.() ?? parts.sessionTools()) : parts.sessionTools();
}

/** What was asked for by name is used or refused; what an agent only prefers gives way, and that is said. */
async function usable(
  answer: { model: string; source: "call" | "settings" | "definition" | "parent" },
  how: {
    definition: AgentDefinition;
    parent: string;
    modelFor(name: string): Promise<SessionModel>;
    warnings: string[];
  },
): Promise<string> {
  try {
    await how.modelFor(answer.model);
    return answer.model;
  } catch (error) {
    const isWish = answer.source === "definition" && how.definition.modelPolicy === "preferred";
    if (!isWish || !(error instanceof TroupeError)) throw error;
    how.warnings.push(`The agent ${how.definition.name} runs on ${how.parent}: ${error.message}`);
    return how.parent;
  }
}

/** At the limit of nesting an agent starts no others, so it is not offered to. */
function toolsOf(task: TaskRecord, sessionTools: readonly Tool[], maxDepth: number): readonly Tool[] {
  const isDeepest = task.spec.depth >= maxDepth;
  return sessionTools.filter(
    ({ name, needs }) =>
      (task.tools === null || task.tools.includes(name)) &&
      !needs &&
      !MAIN_ONLY.has(name) &&
      !(isDeepest && NESTING.has(name)),
  );
}

/** Only who speaks with the user says that the whole task is done. */
const MAIN_ONLY = new Set(["task_complete"]);

const NESTING = new Set(["task", "read_agent", "write_agent", "list_agents", "stop_agent", "subagents_run"]);

async function preload(definition: AgentDefinition, { workspace, warn }: CompanyParts): Promise<string> {
  if (definition.skills.length === 0) return "";
  const { text, missing } = await skillContext(definition.skills, workspace.skills);
  for (const { name, reason } of missing) warn(`The agent ${definition.name} names the skill ${name}: ${reason}`);
  return text;
}

function effortOf(
  definition: AgentDefinition,
  { parts, settings, model }: { parts: CompanyParts; settings: Settings; model: SessionModel },
): NonNullable<Outfit["reasoningEffort"]> | undefined {
  const wished = agentSettings(definition, settings.subagents?.agents ?? {}).reasoningEffort;
  const effort = effectiveEffort({
    definition,
    parent: { model: nameOf(parts.mainModel), ...(parts.mainEffort !== undefined && { effort: parts.mainEffort }) },
    model: nameOf(model),
    ...(wished !== undefined && { settings: wished }),
  });
  return efforts.find((known) => known === effort);
}

const efforts = ["low", "medium", "high", "xhigh", "max"] as const;

function systemOf(what: {
  definition: AgentDefinition;
  parts: CompanyParts;
  tools: readonly Tool[];
  cwd: string;
}): string {
  const { definition, parts, tools, cwd } = what;
  const { workspace, prompt } = parts;
  const names = tools.map(({ name }) => name);
  const sections = promptParts({ ...prompt, context: { ...prompt.context, cwd }, tools: names });
  const wanted: Record<(typeof definition.promptParts)[number], string | undefined> = {
    environment: sections.environment_context,
    safety: sections.safety,
    tools: sections.tool_instructions,
    parallel: sections.tool_efficiency,
  };
  // A prompt of a file or a program is that agent's own; it can open and close none of our tags.
  const own =
    definition.source === "builtin" ? definition.prompt : wrapped("agent_instructions", {}, quoted(definition.prompt));
  return [
    own,
    ...definition.promptParts.map((part) => wanted[part]),
    definition.includeCustomInstructions ? workspace.instructions.text : undefined,
  ]
    .filter((text) => text !== undefined && text !== "")
    .join("\n\n");
}

function taskLimits(environment: Environment, { subagents }: Settings): CompanyOptions["limits"] {
  const depth = environment.TROUPE_SUBAGENT_MAX_DEPTH ?? environment.COPILOT_SUBAGENT_MAX_DEPTH;
  const concurrent = environment.TROUPE_SUBAGENT_MAX_CONCURRENT ?? environment.COPILOT_SUBAGENT_MAX_CONCURRENT;
  return {
    maxDepth: within(depth, 128) ?? subagents?.maxDepth ?? MAX_DEPTH,
    maxConcurrency: within(concurrent, 256) ?? subagents?.maxConcurrency ?? MAX_CONCURRENCY,
    whenFull: subagents?.whenFull ?? "queue",
  };
}

function within(value: string | undefined, most: number): number | undefined {
  const given = Number(value);
  return value && Number.isInteger(given) && given >= 1 ? Math.min(given, most) : undefined;
}
