/**
 * A session whose main agent directs others, on a log that can be killed between any two events. Used by the programs
 * that are killed and by the tests that look at what they left.
 */
import { effectiveTools } from "../../src/agents/effective-tools.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { Provider } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import type { AgentPoolOptions } from "../../src/session/agents/agent-pool-options.ts";
import { Compactions } from "../../src/session/compaction/compaction.ts";
import { Session, type SessionOptions } from "../../src/session/session.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import type { SessionLog } from "../../src/store/store.ts";
import { listAgents } from "../../src/tools/agents/list-agents.ts";
import { readAgent } from "../../src/tools/agents/read-agent.ts";
import { stopAgent } from "../../src/tools/agents/stop-agent.ts";
import { taskTool } from "../../src/tools/agents/task.ts";
import { writeAgent } from "../../src/tools/agents/write-agent.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { agent } from "../support/agent.ts";
import { memoryGrants } from "../support/memory-grants.ts";

export interface AgentPoolStage {
  readonly root: string;
  readonly mode: "create" | "resume";
  readonly provider: Provider;
  readonly agents: readonly string[];
  readonly tools: readonly Tool[];
  readonly limits?: Partial<AgentPoolOptions["limits"]>;
  /** The process dies when an event for which this holds is stored; it writes none beyond. */
  readonly isLast?: (event: SessionEvent, count: number) => boolean;
  /** What happens before an event is stored. */
  readonly beforeStoring?: (event: SessionEvent) => Promise<void>;
  readonly more?: Partial<SessionOptions>;
  /** Of the model, in tokens: conversations that outgrow it are summarised. */
  readonly contextWindow?: number;
}

export const agentPoolStore = (root: string) => jsonlStore({ root, disk: nodeDisk, stamp: systemStamp });

export async function openAgentPool(stage: AgentPoolStage): Promise<Session> {
  const { root, mode, provider, limits, more, contextWindow } = stage;
  const agents = stage.agents.map((name) => agent(name));
  const source = { agents: () => agents };
  const tools = [...stage.tools, taskTool(source), readAgent, writeAgent, listAgents, stopAgent];
  const names = tools.map(({ name }) => name);
  const model = {
    ...{ provider, providerId: "faux", model: "faux", costOf: () => 0 },
    ...(contextWindow !== undefined && { contextWindow }),
  };
  const place = {
    model,
    cwd: root,
    roots: [root],
    policy: policyOf({ allTools: true }, { roots: [root], stateRoot: "/nowhere", writable: [] }),
    ports: {},
  };
  const store = agentPoolStore(root);
  const log = await (mode === "create" ? store.create("one") : store.open("one"));
  const agentPool: AgentPoolOptions = {
    limits: { maxConcurrency: 8, maxDepth: 6, whenFull: "queue", ...limits },
    multiTurn: true,
    agents: () => agents,
    resolveAgent: async ({ definition: cast, parentTools }) => ({
      tools: effectiveTools(cast, parentTools ?? names).tools,
      model: "faux",
      warnings: [],
    }),
    agentSetup: async (task, { prompt }) => ({
      ...place,
      promptAndTools: { system: prompt, tools: tools.filter(({ name }) => task.tools?.includes(name) ?? true) },
      release: async () => undefined,
    }),
  };
  const options: SessionOptions = {
    ...place,
    log: meddled(log, stage),
    stamp: systemStamp,
    version: "0",
    promptAndTools: { system: "You are the director.", tools },
    context: { cwd: root },
    grants: memoryGrants(),
    agentPool,
    ...(contextWindow !== undefined && { compactions: new Compactions({ events: log.events }) }),
    ...more,
  };
  return mode === "create" ? Session.create(options) : Session.resume(options);
}

/** A log at which someone meddles: between the events, and with the life of the process. */
function meddled(log: SessionLog, { isLast, beforeStoring }: AgentPoolStage): SessionLog {
  let count = 0;
  let isOver = false;
  const append: SessionLog["append"] = async (event, options) => {
    if (isOver) return new Promise(() => undefined);
    count++;
    isOver = isLast?.(event, count) ?? false;
    const isTheEnd = isOver;
    await beforeStoring?.(event);
    await log.append(event, options);
    if (!isTheEnd) return;
    process.kill(process.pid, "SIGKILL");
    await new Promise(() => undefined);
  };
  return new Proxy(log, {
    get(target, key) {
      if (key === "append") return append;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
