/**
 * Runs agents of a session as sessions of their own, which any worker of the pool may take. Such a session is
 * `<session>.<agent>`. It has the tenant and the pool of the session that started it, no more rights, and a part of its
 * limits.
 */

import type { AgentDefinition } from "../../../agents/agent.ts";
import { defined } from "../../../lib/defined.ts";
import type { EffectGuard } from "../../../lib/effect-guard.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { RemoteAgents, RemoteEnd, RemoteWork } from "../../../session/agents/remote-agent.ts";
import type { Database } from "../../../store/postgres/database.ts";
import { isSessionId } from "../../../store/session-id.ts";
import { branchOf } from "../../../worktrees/worktrees.ts";
import { ceilingOf } from "../../permissions/ceiling.ts";
import type { AgentHost } from "../../session-request.ts";
import { lastKept } from "../checkout.ts";
import {
  abortReason,
  addWork,
  type ChildRequest,
  findWork,
  lastWork,
  noteAbort,
  type WorkOutcome,
  type WorkRequest,
  type WorkRow,
  waitForWork,
} from "../work.ts";
import type { WorkspaceKeeper } from "../workspace-keeper.ts";
import { usageSince } from "./child-usage.ts";

export interface ElsewhereParts {
  /** The work whose session starts the agents. */
  readonly work: WorkRow;
  readonly database: Database;
  readonly effects: EffectGuard;
  /** Hands work to the engine. Repeating it is safe. */
  submit(work: Pick<WorkRow, "id" | "sessionId" | "pool" | "tenant">): Promise<void>;
  /** Hands another activation of parked work to the engine. */
  submitAgain(work: WorkRow, reason: string): Promise<void>;
  /** Keeps the working folder, once the session is open; absent without a repository. */
  readonly keeper: Promise<WorkspaceKeeper | undefined>;
}

/** A wait is repeated after this time. */
const WAIT_MS = 600_000;
const RETRY_MS = 1_000;

export const remoteAgents =
  (parts: ElsewhereParts) =>
  (host: AgentHost): RemoteAgents => {
    const { work, database, effects } = parts;
    const sessionOf = (taskId: string): string => `${work.sessionId}.${taskId}`;
    return {
      sessionOf,
      refusal: (definition) => refusal(definition, parts, host),
      async submit(child) {
        const { sent } = child;
        const childWork = { id: sent.workId, sessionId: sent.session, pool: work.pool, tenant: work.tenant };
        if ((await findWork(database, sent.workId)) === undefined) {
          const request = await requestOf(child, parts, host);
          await addWork(database, { ...childWork, request, onLoss: work.onLoss, parent: work.id });
        }
        await parts.submit(childWork);
      },
      ended: (sent, signal) => untilEnded(sent, parts, signal),
      usedSoFar: ({ session, seq }) => usageSince(database, session, seq),
      async stop(workId) {
        // A worker that was replaced must not stop what another one waits for.
        await effects.run({ name: "task", waits: true }, new AbortController().signal, () => endFamily(workId, parts));
      },
    };
  };

/** Asks for the end of the work and of that of its agents. */
async function endFamily(workId: string, { database, submitAgain }: ElsewhereParts): Promise<void> {
  for (const work of await noteAbort(database, workId))
    if (work.waitingAt !== null) await submitAgain(work, abortReason(work));
}

async function refusal(
  { mcpServers, name }: AgentDefinition,
  { work, keeper }: ElsewhereParts,
  { mode }: AgentHost,
): Promise<string | undefined> {
  if (!isSessionId(`${work.sessionId}.${"x".repeat(LONGEST_TASK_ID)}`)) return "it is nested too deeply";
  if (Object.keys(mcpServers ?? {}).length > 0) return `the MCP servers of ${name} are set up here`;
  if (mode() === "plan") return "the session is planning";
  const kept = await keeper;
  if (!kept) return "the session has no repository, so its files cannot travel";
  try {
    await kept.keep();
    return undefined;
  } catch (error) {
    return `the repository does not accept the working folder (${error instanceof Error ? error.message : error})`;
  }
}

const LONGEST_TASK_ID = 64;

async function requestOf(
  { task, definition, sent, prompt }: RemoteWork,
  { work, database, keeper }: ElsewhereParts,
  host: AgentHost,
): Promise<WorkRequest> {
  const { request } = work;
  // Later work of the session goes on in its own working folder.
  const before = await lastWork(database, sent.session);
  const ref = before ? before.request.ref : await (await keeper)?.sendTo(sent.session);
  const { limits } = host;
  const child: ChildRequest = {
    ...{ taskId: task.id, agent: asObject(definition), tools: host.tools(task), cwd: host.cwd },
    model: task.spec.model ?? "",
    ...defined({ reasoningEffort: task.spec.reasoningEffort }),
    ceiling: ceilingOf(host.policy, host.own),
    agents: { maxDepth: Math.max(0, limits.maxDepth - task.spec.depth), maxTotal: sent.agents },
    ...{ allowance: sent.allowance ?? {}, since: sent.seq },
  };
  return {
    ...{ prompt: host.redact(prompt), flags: request.flags, child },
    ...defined({ repository: request.repository, ref: ref ?? request.ref, trace: request.trace }),
    asks: (request.asks ?? []).filter((kind) => kind !== "external_tool"),
    ...(request.options && { options: withoutMainAgent(request.options) }),
  };
}

/** Options that are about the main agent of the session, not about all its agents. */
const OF_MAIN_AGENT = ["model", "reasoningEffort", "systemMessage", "agent", "defaultAgent", "sessionLimits"];

const withoutMainAgent = (options: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !OF_MAIN_AGENT.includes(name)));

/** Its servers, isolation and output schema are the business of the session that started it. */
function asObject(definition: AgentDefinition): ChildRequest["agent"] {
  const { name, displayName, description, prompt, models, modelPolicy, reasoningEffort, skills } = definition;
  const { includeCustomInstructions, promptParts } = definition;
  return {
    ...{ name, displayName, description, prompt, models, modelPolicy, skills, includeCustomInstructions, promptParts },
    ...defined({ reasoningEffort }),
  };
}

async function untilEnded(
  { workId, session, seq }: RemoteWork["sent"],
  { database, work, keeper }: ElsewhereParts,
  signal: AbortSignal,
): Promise<RemoteEnd> {
  for (;;) {
    const row = await waitForWork(database, workId, WAIT_MS, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (row?.outcome) {
      const kept = await lastKept(database, session);
      const branch = branchOf(work.sessionId, session.slice(work.sessionId.length + 1));
      const changes = kept && (await (await untilAborted(keeper, signal, () => undefined))?.take(kept, branch));
      return { ...endOf(row.outcome), ...defined({ changes }), ...(await usageSince(database, session, seq)) };
    }
    if (!row) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

function endOf(outcome: WorkOutcome): Pick<RemoteEnd, "outcome" | "answer" | "message"> {
  switch (outcome.kind) {
    case "done":
      return { outcome: "done", answer: outcome.answer };
    case "lost":
      return { outcome: "failed", message: "The worker of the agent was lost, and its job was not continued." };
    case "aborted":
    case "limit":
      return { outcome: outcome.kind, message: outcome.message };
    default:
      return { outcome: "failed", message: outcome.message };
  }
}
