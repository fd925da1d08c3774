import type { AgentDefinition } from "../../src/agents/agent.ts";
import { modelChoices } from "../../src/agents/model-choices.ts";
import { findAgent } from "../../src/agents/names.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import type { Step } from "../../src/model/faux/faux-plan.ts";
import { calls } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { flagsFrom } from "../../src/protocol/flags.ts";
import { type AgentPoolParts, agentPoolOptions } from "../../src/runtime/agents/agent-pool-setup.ts";
import { type PermissionFlags, policyOf } from "../../src/runtime/permissions/policy.ts";
import type { SessionModel } from "../../src/session/session-model.ts";
import type { Store } from "../../src/store/store.ts";
import { type CoordinationSettings, subagentsRunTool } from "../../src/tools/agents/subagents-run.ts";
import { agentTools } from "../../src/tools/builtin.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { agent } from "./agent.ts";
import { memoryStore } from "./memory-store.ts";
import { echo, type Stage, stage } from "./stage.ts";

type StageOptions = NonNullable<Parameters<typeof stage>[1]>;

export interface TroupeOptions extends Omit<StageOptions, "tools" | "provider" | "policy"> {
  readonly agents?: readonly AgentDefinition[];
  readonly tools?: readonly Tool[];
  /** Of the session's tools, those it has at the moment. */
  readonly has?: (name: string) => boolean;
  readonly permissions?: PermissionFlags;
  readonly environment?: Readonly<Record<string, string>>;
  readonly workers?: CoordinationSettings;
  readonly model?: Partial<Pick<SessionModel, "costOf" | "maxOutputTokens">>;
  readonly place?: Partial<Awaited<ReturnType<AgentPoolParts["workspaceFor"]>>>;
}

/** A main agent with agents to direct, as the runtime makes them, all on one scripted model. */
export async function agentPool(steps: readonly Step[], options: TroupeOptions = {}): Promise<Stage> {
  const { agents = [agent("explorer"), agent("writer")], has = () => true, environment = {}, ...rest } = options;
  const { tools = [echo], permissions = { allTools: true }, workers, place, model: more, ...others } = rest;
  const model = fauxModel(...steps);
  const source = { agents: () => modelChoices(agents), find: (wanted: string) => findAgent(wanted, agents) };
  const all = [...tools, ...agentTools.map((make) => make(source)), subagentsRunTool(workers ?? {})];
  const sessionTools = (): readonly Tool[] => all.filter(({ name }) => has(name));
  const cwd = others.cwd ?? "/stage";
  const roots = others.roots ?? [cwd];
  const policy = policyOf(permissions, { roots, stateRoot: "/nowhere", writable: [] });
  const mainModel: SessionModel = { provider: model, providerId: "faux", model: "faux-1", costOf: () => 0, ...more };
  const made = await stage([], {
    stamp: systemStamp,
    ...others,
    policy,
    provider: model,
    agentPool: agentPoolOptions({
      environment: { TROUPE_SUBAGENT_MAX_DEPTH: "3", ...environment },
      workspace: {
        settings: { effective: {} },
        flags: flagsFrom({ environment }).flags,
        skills: [],
        instructions: { text: "" },
      } as unknown as AgentPoolParts["workspace"],
      models: { resolve: async () => mainModel } as unknown as AgentPoolParts["models"],
      mainModel: () => mainModel,
      prompt: { context: { cwd }, platform: "linux" },
      agents: () => agents,
      sessionTools,
      worktrees: cwd,
      workspaceFor: async () => ({
        cwd,
        roots,
        policy,
        ports: others.ports ?? {},
        release: async () => undefined,
        ...place,
      }),
      warn: () => undefined,
    }),
    ...{ model: mainModel },
    promptAndTools: {
      system: "You are on stage.",
      get tools() {
        return sessionTools();
      },
    },
  } as StageOptions);
  return { ...made, model };
}

export const task = (name: string, agentType: string, more: Record<string, string | object> = {}) =>
  calls(["task", { description: "look", prompt: "look around", agent_type: agentType, name, ...more }]);

/** Whose request it is; nobody = the main agent's. */
export const agentOf = ({ cacheKey = "" }: ModelRequest): string | undefined => cacheKey.split("/")[1];

/** Ids of agents that began a turn more often than they ended one. */
export function agentsWithoutEnd(events: readonly SessionEvent[]): string[] {
  const open = new Set<string>();
  for (const { type, agentId = "" } of events) {
    if (type === "subagent.started") open.add(agentId);
    if (type === "subagent.completed" || type === "subagent.failed") open.delete(agentId);
  }
  return [...open];
}

/** What a process that was killed leaves. */
export async function storeWith(events: readonly SessionEvent[]): Promise<Store> {
  const store = memoryStore();
  const log = await store.create("session-1");
  await Promise.all(events.map((event) => log.append(event, { barrier: false })));
  await log.close();
  return store;
}
