import { basename, join } from "node:path";
import { modelChoices } from "../../agents/model-choices.ts";
import { findAgent, suggestAgent } from "../../agents/names.ts";
import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Registry } from "../../tasks/registry.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import type { MessageReceipt, TaskRequest, TaskStart, Tasks } from "../../tools/agents/task-port.ts";
import { ToolError } from "../../tools/tool-error.ts";
import { executorOf } from "../executor.ts";
import type { CallbackTasks } from "../requests/callback-tasks.ts";
import type { AgentPoolOptions } from "./agent-pool-options.ts";

/** The maximum time that a call waits for an agent. The agent continues afterwards. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

interface AgentTasksParts {
  readonly agentId: string | undefined;
  readonly registry: Registry;
  readonly callbackTasks: CallbackTasks;
  readonly options: AgentPoolOptions;
  /** Agents named by the user. They may be started even if models cannot choose them. */
  readonly named?: readonly string[];
}

/**
 * Returns the registry as one agent (undefined: the main agent) may use it: with its own subagents and its own
 * permissions.
 */
export function agentTasks(parts: AgentTasksParts): Tasks {
  const { agentId, registry, callbackTasks, options } = parts;
  const known = (id: string): string => {
    const taskId =
      registry.get(id)?.id ??
      registry.list({ viewer: agentId }).find((task) => task.id.toLowerCase() === id.toLowerCase())?.id;
    if (taskId !== undefined) return taskId;
    throw new ToolError(`There is no agent "${id}". Use list_agents to list the agents.`);
  };
  return {
    agents: () => modelChoices(options.agents()),
    start: (request, signal) => asToolError(start(parts, request, signal)),
    rejoin: (id, toolCallId, signal) => asToolError(waitForTask(parts, { id: known(id), toolCallId }, signal)),
    async read({ id, wait, timeoutMs, sinceAnswer, toolCallId }, signal) {
      const task = known(id);
      const reader = { agentId, toolCallId };
      if (wait) await registry.wait(task, { timeoutMs, signal, reader, ...defined({ sinceAnswer }) });
      else await registry.wait(task, { timeoutMs: 0, signal, reader });
      signal.throwIfAborted();
      return registry.report(task, { viewer: agentId, ...defined({ sinceAnswer }) });
    },
    async write(target, message) {
      const send = async (id: string): Promise<MessageReceipt> => {
        const task = registry.get(id);
        return (task && (await callbackTasks.tell(task, message))) ?? registry.send(id, message, agentId);
      };
      const ids =
        "ids" in target
          ? target.ids.map(known)
          : registry.list({ viewer: agentId, scope: target.scope, includeEnded: false }).map(({ id }) => id);
      return Promise.all(ids.map((id) => send(id)));
    },
    list: ({ scope, includeEnded }) => registry.list({ viewer: agentId, includeEnded, ...defined({ scope }) }),
    async stop(id, toolCallId) {
      const task = known(id);
      const relation = registry.relationOf(agentId, task);
      if (agentId !== undefined && relation !== "child" && relation !== "descendant") {
        throw new ToolError(`Agent "${task}" was not started by you.`);
      }
      await registry.cancel(task, { reader: { agentId, toolCallId } });
      return registry.report(task, { viewer: agentId });
    },
  };
}

async function start(parts: AgentTasksParts, request: TaskRequest, signal: AbortSignal): Promise<TaskStart> {
  const { agentId, registry, options } = parts;
  const definition = findAgent(request.agentType, options.agents());
  // The factory's author chose the agent, so it counts as named.
  const isNamed = parts.named?.includes(definition?.name ?? "") === true || request.factoryRunId !== undefined;
  const mayStart = definition?.infer === true || isNamed;
  if (!definition || !mayStart) throw unknownAgent(request.agentType, options);
  const parent = agentId === undefined ? undefined : registry.get(agentId);
  const isolation = request.isolation ?? definition.isolation;
  const resolved = await options.resolveAgent({
    definition,
    parentTools: parent?.tools ?? null,
    ...defined({ parentModel: parent?.spec.model }),
    toolCallId: request.toolCallId,
    ...defined({ model: request.model, reasoningEffort: request.reasoningEffort, isolation }),
  });
  signal.throwIfAborted();
  // A notice may arrive after an agent's last model call, so an agent waits for its subagents.
  const mode = agentId === undefined ? request.mode : "sync";
  const { limits } = definition;
  const { placement } = resolved;
  const worktree = placement ? undefined : (resolved.worktree ?? (parent && treeOf(parent)));
  const outputSchema = request.outputSchema ?? definition.outputSchema;
  const key = {
    ...defined({ parentId: agentId }),
    toolCallId: request.toolCallId,
    agentDisplayName: definition.displayName,
  };
  const isCallbackTask = options.sessionBased === false && request.factoryRunId === undefined && !placement;
  const forget = isCallbackTask ? parts.callbackTasks.add(key, executorOf(definition, options)) : undefined;
  const created = registry.create({
    ...key,
    name: request.name,
    kind: "agent",
    agentName: definition.name,
    description: request.description,
    prompt: request.prompt,
    mode,
    // An agent requested in the background accepts messages, even if its parent waits for the first answer.
    multiTurn: options.multiTurn && request.mode === "background" && request.factoryRunId === undefined,
    model: resolved.model,
    tools: resolved.tools === null ? null : [...resolved.tools],
    ...((limits || request.costUsd !== undefined) && { limits: taskLimits({ ...limits, ...costOf(request, limits) }) }),
    ...defined({ reasoningEffort: request.reasoningEffort, factoryRunId: request.factoryRunId, worktree, placement }),
    ...(outputSchema && { outputSchema: outputSchema as NonNullable<TaskRequest["outputSchema"]> }),
  });
  created.catch(() => forget?.());
  const { id, queued } = await created;
  if (mode === "background") return { kind: "background", id, queued };
  return waitForTask(parts, { id, toolCallId: request.toolCallId }, signal);
}

/** Waits for the task. Stopping the answer also stops the task, including one that was just created. */
async function waitForTask(
  { agentId, registry }: AgentTasksParts,
  { id, toolCallId }: { readonly id: string; readonly toolCallId: string },
  signal: AbortSignal,
): Promise<TaskStart> {
  const stop = (): void => {
    if (!registry.detachable.isDetached(id)) void registry.cancel(id, { notice: "waits" }).catch(() => undefined);
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const end = await registry
    .wait(id, { timeoutMs: MAX_WAIT_MS, signal, reader: { agentId, toolCallId } })
    .finally(() => signal.removeEventListener("abort", stop));
  signal.throwIfAborted();
  if (end === "promoted" || end === "timeout") return { kind: "background", id, queued: false };
  return { kind: "ended", report: await registry.report(id, { viewer: agentId }) };
}

function costOf({ costUsd }: TaskRequest, limits: { costUsd?: number } | undefined): { costUsd?: number } {
  return costUsd === undefined ? {} : { costUsd: Math.min(costUsd, limits?.costUsd ?? Number.POSITIVE_INFINITY) };
}

function taskLimits(limits: { turns?: number; tokens?: number; costUsd?: number; seconds?: number }) {
  const { seconds, ...rest } = limits;
  return { ...rest, ...(seconds !== undefined && { durationMs: seconds * 1000 }) };
}

/** Returns the task's worktree, which its subagents share. `<folder>/worktrees` means the subfolder named by its id. */
export function treeOf({ id, spec: { worktree } }: TaskRecord): string | undefined {
  return worktree !== undefined && basename(worktree) === "worktrees" ? join(worktree, id) : worktree;
}

function unknownAgent(wanted: string, options: AgentPoolOptions): ToolError {
  const choices = modelChoices(options.agents());
  const close = suggestAgent(
    wanted,
    options.agents().filter(({ infer }) => infer),
  );
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  return new ToolError(
    `There is no agent "${wanted}" to choose.${hint} Valid agent types: ${choices.map(({ name }) => name).join(", ")}.`,
  );
}

/** Turns a refusal of the registry into an error that the model reads. */
export async function asToolError<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (!(error instanceof TroupeError)) throw error;
    throw new ToolError(error.hint ? `${error.message} ${error.hint}` : error.message, { cause: error });
  });
}
