/**
 * Switches the main agent of an open session. From the next message on, the session uses the agent's prompt, tools,
 * skills, model, effort and servers. Deselecting it restores the session's own. The agent's limits apply only if it was
 * chosen before the session began.
 */
import type { AgentDefinition } from "../../agents/agent.ts";
import { modelReference } from "../../session/model-selection.ts";
import type { SessionOptions } from "../../session/session.ts";
import type { CurrentAgents } from "../agents/current-agents.ts";
import { type AgentServers, agentServers } from "../mcp/agent-servers.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import { BY_AGENT } from "../models/model-choice.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { CurrentPromptAndTools } from "./prompt-and-tools.ts";
import { findMainAgent, mainAgentPreferences, modelOf, preload } from "./select-main-agent.ts";
import type { SessionSetup } from "./session-setup.ts";

export interface MainAgentParts {
  readonly workspace: Workspace;
  readonly promptAndTools: CurrentPromptAndTools;
  readonly agents: CurrentAgents | undefined;
  readonly servers: SessionServers;
}

type Choice = NonNullable<NonNullable<SessionOptions["services"]>["agents"]>;

export interface MainAgentChoice extends Choice {
  /** Stops the main agent's servers. */
  close(): Promise<void>;
}

export function mainAgentChoice(setup: SessionSetup, parts: MainAgentParts): MainAgentChoice {
  const { channel } = setup;
  const { promptAndTools } = parts;
  const model = new MainAgentModel(setup, parts.workspace);
  let servers: AgentServers | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const agents = (): readonly AgentDefinition[] => parts.agents?.agents ?? parts.workspace.agents.agents;
  const exchange = async (name: string | undefined): Promise<void> => {
    const catalog = { ...parts.workspace.agents, agents: agents() };
    const mainAgent = name === undefined ? undefined : findMainAgent(name, catalog);
    // Steps that may throw come first, so that nothing has changed by then.
    await model.setFor(mainAgent);
    const skills = mainAgent
      ? await preload(mainAgent, parts.workspace, (message) => channel.warn("agent", message))
      : "";
    const before = servers;
    servers = mainAgent && (await ownServers(mainAgent, { setup, parts }));
    promptAndTools.setMainAgent(mainAgent, { skills, tools: servers?.tools ?? [] });
    await before?.close();
    if (!mainAgent) return channel.emit("subagent.deselected", {});
    const { name: agentName, displayName: agentDisplayName, tools } = mainAgent;
    return channel.emit("subagent.selected", { agentName, agentDisplayName, tools: tools && [...tools] });
  };
  return {
    list: () => agents().map(({ name, description, userInvocable }) => ({ name, description, userInvocable })),
    selected: () => promptAndTools.mainAgent?.name,
    select(name) {
      const done = last.then(() => exchange(name));
      last = done.catch(() => undefined);
      return done;
    },
    async close() {
      await last;
      await servers?.close();
    },
  };
}

/** Opens the agent's servers, except for the initial main agent, whose servers belong to the session. */
async function ownServers(
  mainAgent: AgentDefinition,
  { setup, parts }: { setup: SessionSetup; parts: MainAgentParts },
): Promise<AgentServers | undefined> {
  const { promptAndTools, servers, workspace } = parts;
  if (mainAgent.name === promptAndTools.firstMainAgent?.name) return undefined;
  const warn = (message: string): void => setup.channel.warn("mcp", message);
  return agentServers({ workspace, open: servers.open, warn })(
    mainAgent,
    promptAndTools.allTools.map(({ name }) => name),
  );
}

/** Sets the model of the main agent: its own if it has one and the user named none. */
class MainAgentModel {
  readonly #setup: SessionSetup;
  readonly #workspace: Workspace;
  /** The session's model and effort before the first agent was selected. */
  #before: { readonly model: string; readonly effort: SessionSetup["models"]["reasoningEffort"] } | undefined;

  constructor(setup: SessionSetup, workspace: Workspace) {
    this.#setup = setup;
    this.#workspace = workspace;
  }

  async setFor(mainAgent: AgentDefinition | undefined): Promise<void> {
    const { models, request, environment, channel } = this.#setup;
    if (request.model?.name !== undefined || environment.TROUPE_MODEL || environment.COPILOT_MODEL) return;
    const workspace = this.#workspace;
    const warn = (message: string): void => channel.warn("agent", message);
    const resolve = (name: string) => models.resolve(name);
    const model = mainAgent && (await modelOf(mainAgent, { workspace, resolve, warn }));
    const effort = mainAgent && mainAgentPreferences(mainAgent, workspace).effort;
    if (!model && effort === undefined) {
      if (this.#before) await this.#put(this.#before.model, this.#before.effort);
      this.#before = undefined;
      return;
    }
    this.#before ??= { model: modelReference(models.current), effort: models.reasoningEffort };
    await this.#put(model ? modelReference(model) : this.#before.model, effort ?? this.#before.effort);
  }

  async #put(model: string, effort: SessionSetup["models"]["reasoningEffort"]): Promise<void> {
    const { models } = this.#setup;
    await models.select(model, { reasoningEffort: effort ?? null, cause: BY_AGENT, source: "agent" });
  }
}
