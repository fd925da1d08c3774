/** A session with its agents, put together as the command line does: real shells, rules, prompts and log. */
import { nodeDisk as disk } from "../../src/lib/node/disk.ts";
import { systemStamp as stamp } from "../../src/lib/stamp.ts";
import type { Provider } from "../../src/model/provider.ts";
import { pastSessions } from "../../src/runtime/knowledge/past-sessions.ts";
import { models } from "../../src/runtime/models/models.ts";
import type { PermissionFlags } from "../../src/runtime/permissions/policy.ts";
import { processParts } from "../../src/runtime/process-parts.ts";
import { prepareSession } from "../../src/runtime/setup/prepare.ts";
import { Session } from "../../src/session/session.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import type { Registry } from "../../src/tasks/registry.ts";
import { builtinTools } from "../../src/tools/builtin.ts";

export interface RealAgentPool {
  readonly home: string;
  readonly cwd: string;
  /** Where the model is. */
  readonly baseUrl?: string;
  /** A scripted one in its place. */
  readonly provider?: Provider;
  /** How many may work at once; settings allow less than what is asked of the machinery here. */
  readonly maxConcurrency: number;
  readonly permissions?: PermissionFlags;
}

export async function realAgentPool(
  how: RealAgentPool,
): Promise<{ session: Session; registry: Registry; close(): Promise<void> }> {
  const { home: stateRoot, cwd, provider, maxConcurrency } = how;
  const environment = {
    PATH: process.env.PATH,
    HOME: stateRoot,
    TROUPE_BASE_URL: how.baseUrl ?? "http://127.0.0.1:9/v1",
    TROUPE_API_KEY: "mock",
    TROUPE_MODEL: "mock-model",
    TROUPE_WIRE_API: "completions",
    TROUPE_NO_DISCOVERY: "1",
  };
  const store = jsonlStore({ root: stateRoot, disk, stamp });
  const log = await store.create("one");
  const past = pastSessions({ stateRoot, store, disk });
  const shared = processParts({ environment, stateRoot, disk });
  const { options, started } = await prepareSession({ cwd, permissions: how.permissions ?? {} }, log, {
    ...{ environment, stateRoot, disk, stamp, shared, store, past, tools: builtinTools },
    ...{ lastModel: undefined, identity: undefined },
    models: models({ environment, stateRoot, stamp }),
  });
  const { agentPool } = options;
  if (!agentPool) throw new Error("the session has no agent pool");
  const scripted = provider && { ...options.model, provider };
  const session = await Session.create({
    ...options,
    ...(scripted && { model: scripted }),
    agentPool: {
      ...agentPool,
      limits: { ...agentPool.limits, maxConcurrency },
      agentSetup: async (task, definition) => {
        const agentSetup = await agentPool.agentSetup(task, definition);
        return scripted ? { ...agentSetup, model: scripted } : agentSetup;
      },
    },
  });
  started(session);
  const registry = session.agents.tasks;
  if (!registry) throw new Error("the session has no tasks");
  const close = async (): Promise<void> => {
    await session.close();
    await shared.close();
  };
  return { session, registry, close };
}
