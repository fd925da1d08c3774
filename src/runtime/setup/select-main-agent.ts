/**
 * Selects the main agent of a session. The session uses its prompt, skills, model and servers, and only the tools it
 * lists. Agents that it starts have no more tools. The choice is in the log, so that a resumed session keeps it.
 */

import type { AgentDefinition } from "../../agents/agent.ts";
import { effectiveTools } from "../../agents/effective-tools.ts";
import { findAgent, suggestAgent } from "../../agents/names.ts";
import { agentSettings } from "../../catalog/agents/agents-settings.ts";
import { skillContext } from "../../context/skills/load-skill.ts";
import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Limits } from "../../session/budget/budget.ts";
import type { Session, SessionOptions } from "../../session/session.ts";
import type { SessionModel } from "../../session/session-model.ts";
import { resolveServers, type ServerSources } from "../../tools/mcp/config/config.ts";
import { noticeText } from "../../tools/mcp/config/config-notice.ts";
import type { Tool } from "../../tools/tool.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface MainAgentSelection {
  /** Undefined: the default main agent. */
  readonly definition: AgentDefinition | undefined;
  /** Includes the agent's servers. */
  readonly workspace: Workspace;
  /** The full text of the agent's skills, for its prompt. */
  readonly skills: string;
  readonly reasoningEffort?: NonNullable<SessionOptions["reasoningEffort"]>;
  /** Returns the agent's model if it is available. Throws if the agent requires it and it is not. */
  model(resolve: (name: string) => Promise<SessionModel>): Promise<SessionModel | undefined>;
  /** Writes a new choice to the log. */
  announce(session: Session): void;
}

/** Selects the default main agent, unless an agent has this name. */
const DEFAULT_AGENT = "default";

export async function selectMainAgent(request: {
  /** The requested agent (default: the one in the log). */
  wanted: string | undefined;
  events: readonly SessionEvent[];
  workspace: Workspace;
  /** True if troupe itself chooses: then agents that users cannot choose are allowed. */
  isChosenByTroupe?: boolean;
  warn(message: string): void;
}): Promise<MainAgentSelection> {
  const { wanted, events, workspace, isChosenByTroupe = false, warn } = request;
  const before = selectedIn(events);
  const name = wanted ?? before;
  const isAsked = wanted !== undefined;
  const definition =
    name === undefined ? undefined : findSelectable(name, workspace.agents, { isChosenByTroupe, isAsked });
  if (!definition) {
    return {
      definition,
      workspace,
      skills: "",
      model: async () => undefined,
      announce: (session) => void (before !== undefined && session.record.emit("subagent.deselected", {})),
    };
  }
  const isNew = definition.name !== before;
  const skills = await preload(definition, workspace, isNew ? warn : () => undefined);
  const { effort } = mainAgentPreferences(definition, workspace);
  if (isNew) tellUnused(definition, warn);
  return {
    definition,
    workspace: withServersOf(definition, workspace),
    skills,
    ...defined({ reasoningEffort: effort }),
    // A session resumed with the same agent keeps its model.
    model: async (resolve) =>
      isNew || wanted !== undefined ? modelOf(definition, { workspace, resolve, warn }) : undefined,
    announce(session) {
      if (!isNew) return;
      const { name: agentName, displayName: agentDisplayName, tools } = definition;
      void session.record.emit("subagent.selected", { agentName, agentDisplayName, tools: tools && [...tools] });
    },
  };
}

/** Returns the session's tools that the main agent may use. */
export function toolsOfMainAgent(definition: AgentDefinition, tools: readonly Tool[]): readonly Tool[] {
  const names = effectiveTools(
    definition,
    tools.map(({ name }) => name),
    { traitsOf: (name) => tools.find((tool) => tool.name === name) },
  ).tools;
  return tools.filter(({ name }) => names.includes(name));
}

/** Returns the lower of both limits, one by one. */
export function limitsOfMainAgent(definition: Pick<AgentDefinition, "limits"> | undefined, given: Limits): Limits {
  const own = definition?.limits;
  if (!own) return given;
  const least = (key: keyof Limits): Limits => {
    const values = [own[key], given[key]].filter((value) => value !== undefined);
    return values.length === 0 ? {} : { [key]: Math.min(...values) };
  };
  return { ...least("turns"), ...least("tokens"), ...least("costUsd") };
}

const efforts = ["low", "medium", "high", "xhigh", "max"] as const;

function selectedIn(events: readonly SessionEvent[]): string | undefined {
  const last = events.findLast(
    ({ type, agentId }) => agentId === undefined && (type === "subagent.selected" || type === "subagent.deselected"),
  );
  return last?.type === "subagent.selected" ? last.data.agentName : undefined;
}

/** Returns the agent's name: `.github/agents/poet.agent.md` is called poet. */
const fileName = (path: string): string =>
  (path.split("/").at(-1) ?? "").toLowerCase().replace(/(?:\.agent)?\.md$/, "");

type Known = Pick<Workspace["agents"], "agents" | "disabled" | "notices">;

/** Returns the named agent. Throws if there is none, or it may not be the main agent. */
export function findMainAgent(wanted: string, known: Known): AgentDefinition | undefined {
  return findSelectable(wanted, known, { isAsked: true, isChosenByTroupe: false });
}

function findSelectable(
  wanted: string,
  { agents, disabled, notices }: Known,
  { isAsked, isChosenByTroupe }: { isAsked: boolean; isChosenByTroupe: boolean },
): AgentDefinition | undefined {
  const found = findAgent(wanted, agents);
  if (found && (found.userInvocable || isChosenByTroupe)) return found;
  if (!found && isAsked && wanted === DEFAULT_AGENT) return undefined;
  const name = clip(wanted, 80);
  const remedy = isAsked
    ? ""
    : ` It was the main agent of this session; to continue without it: --agent ${DEFAULT_AGENT}.`;
  if (found) {
    const why = found.sidekick ? "it is a sidekick" : "its file says user-invocable: false";
    throw new TroupeError("usage", `The agent '${name}' cannot be chosen: ${why}.`, {
      hint: `${found.sidekick ? "It starts by itself." : "Models can start it."}${remedy}`,
    });
  }
  if (findAgent(wanted, disabled)) {
    throw new TroupeError("usage", `The agent '${name}' is switched off by settings (subagents).`, {
      hint: `Switch it on, or choose another: troupe agents list.${remedy}`,
    });
  }
  const broken = notices.find(({ kind, path }) => kind === "broken" && fileName(path) === wanted.toLowerCase());
  if (broken) {
    const hint = `Fix the file; \`troupe agents check\` shows all problems.${remedy}`;
    const why = broken.message.replace(/^The agent \S+ is not used: /, "");
    throw new TroupeError("usage", `The agent '${name}' cannot be used: ${why}`, { hint });
  }
  const close = suggestAgent(wanted, agents);
  const names = agents.filter(({ userInvocable }) => userInvocable).map((agent) => agent.name);
  const listed = `Agents: ${clip(names.join(", "), 400)}.`;
  throw new TroupeError("usage", `Custom agent '${name}' not found.`, {
    hint: `${close === undefined ? "" : `Did you mean ${close}? `}${listed}${remedy}`,
  });
}

/** Returns the full text of an agent's skills, and warns about missing ones. */
export async function preload(
  definition: AgentDefinition,
  workspace: Workspace,
  warn: (message: string) => void,
): Promise<string> {
  if (definition.skills.length === 0) return "";
  const { text, missing } = await skillContext(definition.skills, workspace.skills);
  for (const { name, reason } of missing) warn(`The agent ${definition.name} names the skill ${name}: ${reason}`);
  return text;
}

/** Warns about fields that apply only to subagents. */
function tellUnused({ name, isolation, outputSchema, limits }: AgentDefinition, warn: (message: string) => void): void {
  const unused = [
    isolation && "isolation",
    outputSchema && "output-schema",
    limits?.seconds !== undefined && "limits.seconds",
  ].filter(Boolean);
  if (unused.length > 0) warn(`The agent ${name} is the main agent, so this has no effect: ${unused.join(", ")}.`);
}

/** Returns the models and effort from the agent's file and the user's settings. */
export function mainAgentPreferences(definition: AgentDefinition, { settings }: Workspace) {
  const own = agentSettings(definition, settings.effective.subagents?.agents ?? {});
  const effort = own.reasoningEffort ?? definition.reasoningEffort;
  return {
    models: own.model === undefined ? definition.models : [own.model, ...definition.models],
    effort: efforts.find((known) => known === effort),
  };
}

/** Returns the first available model. Warns if none is available, or throws if the agent requires one. */
export async function modelOf(
  definition: AgentDefinition,
  ports: { workspace: Workspace; resolve(name: string): Promise<SessionModel>; warn(message: string): void },
): Promise<SessionModel | undefined> {
  const unmet: string[] = [];
  for (const wanted of mainAgentPreferences(definition, ports.workspace).models) {
    if (wanted.trim().toLowerCase() === "inherit") break;
    try {
      return await ports.resolve(wanted);
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      unmet.push(error.message);
    }
  }
  if (unmet.length === 0) return undefined;
  const { name, modelPolicy } = definition;
  if (modelPolicy === "required") {
    throw new TroupeError("configuration", `The agent ${name} needs a model that cannot be used: ${unmet.join(" ")}`, {
      hint: "Set up that model, or give another with --model.",
    });
  }
  ports.warn(`The agent ${name} does not run on the model it prefers: ${unmet.join(" ")}`);
  return undefined;
}

/** Adds the agent's servers as if its owner had configured them. They were approved when the agent was loaded. */
export function withServersOf(definition: AgentDefinition, workspace: Workspace): Workspace {
  const { mcpServers: servers } = definition;
  if (servers === undefined || Object.keys(servers).length === 0) return workspace;
  const sources = sourcesWith(definition, servers, workspace.serverSources);
  const resolved = resolveServers(sources);
  const known = new Set(workspace.servers.notices.map(noticeText));
  const notices = resolved.notices.map(noticeText).filter((notice) => !known.has(notice));
  return { ...workspace, servers: resolved, serverSources: sources, notices: [...workspace.notices, ...notices] };
}

function sourcesWith(
  { source, path, pluginName }: AgentDefinition,
  servers: Readonly<Record<string, unknown>>,
  sources: ServerSources,
): ServerSources {
  if (source === "program" || source === "builtin") return { ...sources, program: { ...sources.program, ...servers } };
  if (source === "plugin") {
    const plugins = (sources.plugins ?? []).map((plugin) =>
      plugin.name === pluginName
        ? { ...plugin, parts: [{ kind: "inline" as const, value: { mcpServers: servers } }, ...plugin.parts] }
        : plugin,
    );
    return { ...sources, plugins };
  }
  const scope = source === "user" ? ("user" as const) : ("project" as const);
  const file = path ?? source;
  const folder = file.replace(/[\\/][^\\/]*$/, "");
  return { ...sources, settings: [{ scope, source: file, folder, servers }, ...(sources.settings ?? [])] };
}
