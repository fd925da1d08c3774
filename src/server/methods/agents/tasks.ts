/** The subagents of a session's main agent, and its background commands. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import type { Json } from "../../../lib/json.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { type MethodTable, nothing, type SessionCall, sessionMethod } from "../method.ts";

const WAIT_MS = 24 * 60 * 60 * 1000;
const message = () => z.string().max(4_000).optional();
const JsonValue: z.ZodType<Json> = z.json();
const ClientUpdate = () =>
  z.discriminatedUnion("kind", [
    z.object({
      kind: z.literal("progress"),
      status: z.enum(["running", "idle"]).optional(),
      message: message(),
      phase: z.string().max(200).nullish(),
      percentage: z.number().min(0).max(100).nullish(),
    }),
    z.object({ kind: z.literal("completed"), message: message(), result: JsonValue.optional() }),
    z.object({
      kind: z.literal("failed"),
      message: message(),
      error: z.string().max(4_000),
      code: z.string().max(200).optional(),
    }),
    z.object({ kind: z.literal("cancelled"), message: message(), reason: z.string().max(2_000).optional() }),
  ]);
const byId = () => ({ id: z.string() });

export const tasksMethods: MethodTable = {
  "session.tasks.list": sessionMethod(nothing, (_, { session, hosted, connection }) => ({
    tasks: [
      ...(session.agents.tasks?.list() ?? []).map((task) => agentInfo(session, task.id)),
      ...shellInfos(session),
      // Clients before SDK 1.0.14 support only agents and shells.
      ...(connection.taskKinds.has("client") ? hosted.tasks.list() : []),
    ],
  })),
  "session.tasks.register": sessionMethod(
    () => ({
      type: z.literal("client"),
      clientTaskId: z.string().min(1).max(200),
      description: z.string().max(2_000),
      displayName: z.string().max(200).optional(),
      cancellable: z.boolean(),
      expectedSequence: z.int().nonnegative().optional(),
    }),
    ({ type: _, ...registration }, { hosted, connection }) => hosted.tasks.register(connection, registration),
  ),
  "session.tasks.update": sessionMethod(
    () => ({ id: z.string().min(1), sequence: z.int().nonnegative(), update: ClientUpdate() }),
    ({ id, sequence, update }, { hosted, connection }) => hosted.tasks.update(connection, { id, sequence, update }),
  ),
  "session.tasks.startAgent": sessionMethod(
    () => ({
      agentType: z.string(),
      prompt: z.string(),
      name: z.string(),
      description: z.string().optional(),
      model: z.string().optional(),
    }),
    async ({ agentType, prompt, name, description = name, model }, { session }) => {
      const started = await session.agents.start({
        agentType,
        prompt,
        name,
        description,
        ...defined({ model }),
      });
      return { agentId: started };
    },
  ),
  "session.tasks.refresh": sessionMethod(nothing, () => ({})),
  "session.tasks.waitForPending": sessionMethod(nothing, async (_, { session, signal }) => {
    await session.agents.tasks?.waitForAll(WAIT_MS, signal);
    return {};
  }),
  "session.tasks.getProgress": sessionMethod(byId, ({ id }, { session, hosted }) => ({
    progress: hosted.tasks.progress(id) ?? progressOf(session, id),
  })),
  "session.tasks.getCurrentPromotable": sessionMethod(nothing, (_, { session }) => promotable(session)),
  "session.tasks.promoteToBackground": sessionMethod(byId, async ({ id }, { session }) => ({
    promoted: (await attempt(session, id, (tasks) => tasks.promote(id))) === true,
  })),
  "session.tasks.promoteCurrentToBackground": sessionMethod(nothing, async (_, { session }) => {
    const current = promotable(session);
    if (current.task) await session.agents.tasks?.promote(current.task.id);
    return current;
  }),
  "session.tasks.cancel": sessionMethod(byId, async ({ id }, { session, hosted }) => ({
    cancelled: (await hosted.tasks.cancel(id)) || (await attempt(session, id, (tasks) => tasks.cancel(id))) === true,
  })),
  "session.tasks.remove": sessionMethod(byId, async ({ id }, { session, hosted }) => ({
    removed: hosted.tasks.remove(id) || ((await session.agents.tasks?.remove(id)) ?? false),
  })),
  "session.tasks.sendMessage": sessionMethod(
    () => ({ id: z.string(), message: z.string(), fromAgentId: z.string().optional() }),
    ({ id, message }, call) => sendMessage(call, id, message),
  ),
  "session.cancelAllBackgroundAgents": sessionMethod(nothing, async (_, { session }) => {
    const live = session.agents.tasks?.list({ includeEnded: false }) ?? [];
    const background = live.filter(({ mode, parentId }) => mode === "background" && parentId === undefined);
    await Promise.all(background.map(({ id }) => session.agents.tasks?.cancel(id)));
    return background.length;
  }),
};

type Tasks = NonNullable<Session["agents"]["tasks"]>;

/** Returns false for an unknown id, and if it is too late. */
async function attempt(session: Session, id: string, act: (tasks: Tasks) => Promise<unknown>): Promise<boolean> {
  if (!session.agents.tasks?.get(id)) return false;
  return (await act(session.agents.tasks)) !== false;
}

async function sendMessage({ session }: SessionCall, id: string, message: string): Promise<object> {
  if (!session.agents.tasks) return { sent: false, error: `There is no agent "${id}".` };
  const { outcome, error } = await session.agents.tasks.send(id, message);
  return outcome === "refused" ? { sent: false, error: error ?? "It was refused." } : { sent: true };
}

interface AgentInfo {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** Returns a task in the form of the protocol. */
function agentInfo(session: Session, id: string): AgentInfo {
  const record = session.agents.tasks?.get(id);
  if (!record) throw new TroupeError("usage", `There is no agent "${id}".`);
  const { spec, status, error, answers, startedAt, createdAt, endedAt, mode, model, activeMs } = record;
  const last = answers.at(-1);
  return {
    type: "agent",
    id,
    toolCallId: spec.toolCallId,
    agentType: spec.agentName,
    displayName: spec.agentDisplayName,
    description: spec.description,
    prompt: spec.prompt,
    status: status === "queued" ? "running" : status,
    executionMode: mode,
    canPromoteToBackground: mode === "sync" && status === "running",
    startedAt: new Date(startedAt ?? createdAt).toISOString(),
    activeTimeMs: activeMs,
    ...(endedAt !== undefined && { completedAt: new Date(endedAt).toISOString() }),
    ...defined({ model, parentId: record.parentId }),
    ...(last && { latestResponse: last.response, ...(status === "completed" && { result: last.response }) }),
    ...defined({ error }),
  };
}

function shellInfos(session: Session): object[] {
  const shells = session.workspace.shells?.list() ?? [];
  return shells.map(({ shellId, command, state, mode }) => ({
    type: "shell",
    id: shellId,
    command,
    description: command,
    status: state === "running" ? "running" : "completed",
    executionMode: "background",
    attachmentMode: mode,
    canPromoteToBackground: false,
  }));
}

function progressOf(session: Session, id: string): object | null {
  const record = session.agents.tasks?.get(id);
  if (!record) return null;
  const recentActivity = record.recentActivity.map(({ message, timestamp }) => ({
    message,
    timestamp: new Date(timestamp).toISOString(),
  }));
  return {
    type: "agent",
    recentActivity,
    ...defined({ latestIntent: record.latestIntent }),
  };
}

/** Returns the agent that a call of the main agent waits for. */
function promotable(session: Session): { task?: AgentInfo } {
  const waiting = session.agents.tasks
    ?.list({ includeEnded: false })
    .find(({ mode, status, parentId }) => mode === "sync" && status === "running" && parentId === undefined);
  return waiting ? { task: agentInfo(session, waiting.id) } : {};
}
