import type { AgentDefinition } from "../../agents/agent.ts";
import { modelChoices } from "../../agents/model-choices.ts";
import { findAgent, keysOf, normaliseName } from "../../agents/names.ts";
import type { AgentCatalog } from "../../catalog/agents/agents.ts";
import { agentSettings } from "../../catalog/agents/agents-settings.ts";
import type { AgentWatch } from "../../catalog/agents/agents-watch.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { GivenSubagents } from "../../session/session-options.ts";
import type { CoordinationSettings } from "../../tools/agents/subagents-run.ts";
import { agentTools, coordinationTools, inboxTools } from "../../tools/builtin.ts";
import { rolesFrom } from "../../tools/coordination/roles.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionChannel } from "../setup/session-channel.ts";
import type { Workspace } from "../workspace/workspace.ts";

const QUIET_START_MS = 250;

/** The agents of a session and the tools that name them, updated while files change. */
export class CurrentAgents {
  readonly #workspace: Workspace;
  readonly #channel: SessionChannel;
  readonly #workers: CoordinationSettings;
  /** All agents found, including those that a client disabled. */
  #found: readonly AgentDefinition[];
  #agents: readonly AgentDefinition[];
  #given: GivenSubagents = {};
  #tools: readonly Tool[];
  #watch: Promise<AgentWatch> | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #hasInbox: boolean;
  #isClosed = false;

  /** `events`: the session's log, if it is resumed. */
  constructor(workspace: Workspace, channel: SessionChannel, events: readonly SessionEvent[]) {
    this.#workspace = workspace;
    this.#hasInbox = events.some(({ type }) => type === "troupe.inbox_entry");
    this.#channel = channel;
    const { roles: given, workers = {} } = workspace.settings.effective.subagents ?? {};
    const { seconds, requestSeconds, ...limits } = workers;
    const { roles, problems } = rolesFrom(given);
    for (const problem of problems) channel.notice(`Settings, subagents.roles: ${problem}.`);
    this.#workers = {
      roles,
      limits: {
        ...limits,
        ...(seconds !== undefined && { durationMs: seconds * 1000 }),
        ...(requestSeconds !== undefined && { requestMs: requestSeconds * 1000 }),
      },
    };
    this.#found = workspace.agents.agents;
    this.#agents = this.#found;
    this.#tools = this.#toolsFor(this.#agents);
  }

  get agents(): readonly AgentDefinition[] {
    return this.#agents;
  }

  /** A client's settings for agents, in addition to the user's. */
  get given(): GivenSubagents {
    return this.#given;
  }

  /** Applies to agents that start from now on. */
  give(given: GivenSubagents): void {
    this.#given = given;
    this.#show();
  }

  /** The tools that direct agents. */
  get tools(): readonly Tool[] {
    return this.#tools;
  }

  /** Starts or refreshes the watch; call it with every message. The start is delayed, so short sessions pay nothing. */
  watch(): void {
    if (this.#isClosed || this.#timer) return void this.#watch?.then((watch) => watch.refresh()).catch(() => undefined);
    this.#timer = setTimeout(() => {
      this.#watch = this.#begin();
      this.#watch.catch(() => undefined); // then the agents stay unchanged
    }, QUIET_START_MS).unref();
  }

  /** Reads all agents again, including those of the server. */
  async reload(): Promise<void> {
    if (this.#isClosed) return;
    const { loadAgents } = await import("../../catalog/agents/agents.ts");
    const { agentSources } = this.#workspace;
    agentSources.forgetRemote?.();
    this.#take(await loadAgents(agentSources));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    (await this.#watch?.catch(() => undefined))?.close();
  }

  async #begin(): Promise<AgentWatch> {
    const { watchAgents } = await import("../../catalog/agents/agents-watch.ts");
    const watch = await watchAgents(this.#workspace.agentSources, (catalog) => this.#take(catalog));
    this.#take(watch.current);
    return watch;
  }

  #take({ agents, updated }: AgentCatalog): void {
    if (this.#isClosed || JSON.stringify(agents) === JSON.stringify(this.#found)) return;
    this.#found = agents;
    this.#show();
    void this.#channel.emit("session.custom_agents_updated", updated);
    for (const message of updated.errors) this.#channel.notice(message);
  }

  #show(): void {
    const { disabledSubagents = [], agents: settings = {} } = this.#given;
    const off = new Set(disabledSubagents.map(normaliseName));
    this.#agents = this.#found.filter(
      (agent) => !keysOf(agent).some((key) => off.has(key)) && agentSettings(agent, settings).disabled !== true,
    );
    this.#tools = this.#toolsFor(this.#agents);
    this.#channel.toolsChanged();
  }

  #toolsFor(agents: readonly AgentDefinition[]): readonly Tool[] {
    const source = { agents: () => modelChoices(agents), find: (wanted: string) => findAgent(wanted, agents) };
    const mayWrite = this.#workspace.flags.has("SIDEKICK_AGENTS") && agents.some(({ sidekick }) => sidekick);
    return [
      ...agentTools.map((make) => make(source)),
      ...coordinationTools.map((make) => make(this.#workers)),
      ...(mayWrite || this.#hasInbox ? inboxTools : []),
    ];
  }
}
