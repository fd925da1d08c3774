/**
 * The agents of a session, from all sources: host program, user, project, plugins, server, and built-in. The first
 * agent with a name wins. A repository replaces neither the user's agents nor built-in ones.
 */

import { type AgentDefinition, type AgentSource, BOARD_AGENT } from "../../agents/agent.ts";
import { builtinAgents } from "../../agents/builtin/parsed.derived.ts";
import { keysOf, normaliseName } from "../../agents/names.ts";
import { agentFromObject } from "../../agents/parse-agent.ts";
import { defined } from "../../lib/defined.ts";
import type { ItemTrust, PinnedItem } from "../../lib/pinned-item.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { type AgentSearchPaths, agentFiles, agentLocations } from "./agents-locations.ts";
import { type AgentNotice, agentNotices, type NoteAgent } from "./agents-notice.ts";
import { readAgentFiles } from "./agents-read.ts";
import type { FetchRemote } from "./agents-remote.ts";
import { withApprovedServers } from "./agents-servers.ts";
import { type AgentOverrides, agentSettings } from "./agents-settings.ts";
import { mayStart } from "./agents-sidekick.ts";

export interface AgentSources extends AgentSearchPaths {
  /** `customAgents` from the host program. */
  readonly program?: readonly unknown[];
  /** Set only if an address and a token are configured. */
  readonly remote?: FetchRemote;
  /** Makes the next read request the server again. */
  readonly forgetRemote?: () => void;
  /** `subagents.disabledSubagents` of the settings. */
  readonly disabled?: readonly string[];
  /** `subagents.agents` of the settings. */
  readonly overrides?: AgentOverrides;
  readonly excludedBuiltins?: readonly string[];
  /** The enabled ones of the built-in agents that are off by default. */
  readonly optional?: readonly string[];
  /** Called for every MCP server of a workspace's agent, and for every sidekick. Without it none is used. */
  readonly check?: (item: PinnedItem) => ItemTrust;
  readonly signal?: AbortSignal;
}

export interface AgentCatalog {
  /** Usable agents, built-in ones last; their names are unique. */
  readonly agents: readonly AgentDefinition[];
  /** Agents disabled by settings. */
  readonly disabled: readonly AgentDefinition[];
  /** The wire event; built-in agents are not custom. */
  readonly updated: EventData<"session.custom_agents_updated">;
  readonly notices: readonly AgentNotice[];
}

const MAX_AGENTS = 300;
const OPTIONAL: ReadonlySet<string> = new Set([BOARD_AGENT, "subconscious-agent", "github-context"]);
const MAY_REPLACE_OURS: ReadonlySet<AgentSource> = new Set(["program", "user"]);

/** Throws a `TroupeError` for invalid agents of the host program. Other problems become notices. */
export async function loadAgents(sources: AgentSources): Promise<AgentCatalog> {
  const { note, all } = agentNotices();
  const fromProgram = programAgents(sources.program ?? [], note);
  const remote = remoteAgents(sources, note);
  const fromFiles = await readAgentFiles(agentFiles(agentLocations(sources), note), note);
  const ours = new Set(builtinAgents.map(({ id }) => id).filter((name) => isActive(name, sources)));
  const custom = mergeByName([...fromProgram, ...fromFiles, ...(await remote)], ours, note);
  const taken = new Set(custom.flatMap(keysOf));
  const builtin = builtinAgents.filter(({ id }) => ours.has(id) && !taken.has(id));
  const isOff = switchedOff(sources, note);
  const agents: AgentDefinition[] = [];
  const disabled: AgentDefinition[] = [];
  for (const agent of [...custom, ...builtin]) {
    if (isOff(agent)) disabled.push(agent);
    else if (mayStart(agent, { check: sources.check, note }))
      agents.push(await withApprovedServers(agent, { check: sources.check, note }));
  }
  const notices = all();
  return { agents, disabled, updated: updatedEvent(agents, notices), notices };
}

function programAgents(given: readonly unknown[], note: NoteAgent): AgentDefinition[] {
  return given.map((value) => {
    const parsed = agentFromObject(value, { source: "program" });
    if (!parsed.ok) {
      const hint = "Each of customAgents needs a name and a prompt.";
      throw new TroupeError("usage", `A custom agent cannot be used: ${parsed.message}.`, { hint });
    }
    for (const { message } of parsed.warnings) note({ kind: "field", path: "program", message: `${message}.` });
    return parsed.agent;
  });
}

async function remoteAgents({ remote, signal }: AgentSources, note: NoteAgent): Promise<AgentDefinition[]> {
  if (remote === undefined) return [];
  const { loadRemote } = await import("./agents-remote.ts");
  return loadRemote(remote, { note, ...defined({ signal }) });
}

function isActive(name: string, { excludedBuiltins = [], optional = [] }: AgentSources): boolean {
  if (OPTIONAL.has(name) && !optional.includes(name)) return false;
  return !excludedBuiltins.some((excluded) => normaliseName(excluded) === name);
}

/** Keeps the first agent of each name, and notes those left out. */
function mergeByName(
  candidates: readonly AgentDefinition[],
  ours: ReadonlySet<string>,
  note: NoteAgent,
): AgentDefinition[] {
  const taken = new Map<string, AgentDefinition>();
  const kept: AgentDefinition[] = [];
  for (const agent of candidates) {
    const keys = keysOf(agent);
    const noteLeftOut = (why: string): void =>
      note({
        kind: "clash",
        path: sourceName(agent),
        message: `The agent ${agent.name} of ${sourceName(agent)} is not used: ${why}`,
      });
    const builtin = MAY_REPLACE_OURS.has(agent.source) ? undefined : keys.find((key) => ours.has(key));
    const earlier = keys.map((key) => taken.get(key)).find((one) => one !== undefined);
    if (builtin !== undefined)
      noteLeftOut(`${builtin} is built in, and only your own agents can replace it. Rename it.`);
    else if (earlier) noteLeftOut(`${sourceName(earlier)} has the same name and comes first.`);
    else if (kept.length >= MAX_AGENTS) {
      note({ kind: "limit", path: sourceName(agent), message: `Only the first ${MAX_AGENTS} agents are used.` });
      break;
    } else {
      for (const key of keys) taken.set(key, agent);
      kept.push(agent);
    }
  }
  return kept;
}

const sourceName = ({ path, source }: AgentDefinition): string =>
  path ?? `the ${source === "remote" ? "server" : source}`;

function switchedOff({ disabled = [], overrides }: AgentSources, note: NoteAgent): (agent: AgentDefinition) => boolean {
  const names = new Set(disabled.map(normaliseName));
  return (agent) =>
    keysOf(agent).some((key) => names.has(key)) || agentSettings(agent, overrides, note).disabled === true;
}

function updatedEvent(agents: readonly AgentDefinition[], notices: readonly AgentNotice[]): AgentCatalog["updated"] {
  const custom = agents.filter(({ source }) => source !== "builtin");
  const isError = ({ kind }: AgentNotice): boolean => kind === "broken" || kind === "refused";
  return {
    agents: custom.map(({ id, name, displayName, description, source, tools, userInvocable, models: [model] }) => ({
      id,
      name,
      displayName,
      description,
      source,
      tools: tools === null ? null : [...tools],
      userInvocable,
      ...defined({ model }),
    })),
    warnings: notices.filter((notice) => !isError(notice)).map(({ message }) => message),
    errors: notices.filter(isError).map(({ message }) => message),
  };
}
