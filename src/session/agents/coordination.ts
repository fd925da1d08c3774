/**
 * Coordinated workers. They are ordinary tasks: in the registry, in the log, run by the loop, with the permissions of
 * the requesting agent. Unlike other tasks, they get their tools and prompt from the call.
 */

import type { AgentDefinition } from "../../agents/agent.ts";
import { defined } from "../../lib/defined.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { LimitReached } from "../../loop/run.ts";
import { withTimeLimit } from "../../model/time-limit.ts";
import type { Emit } from "../../protocol/event.ts";
import type { AnswerEnd } from "../../tasks/ports.ts";
import type { Registry } from "../../tasks/registry.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import { isIdleOrEnded } from "../../tasks/task-state.ts";
import {
  type Coordination,
  NO_RESULT,
  type WorkerEnd,
  type WorkerLimits,
  type WorkerSpec,
  type WorkerStep,
} from "../../tools/coordination/coordination.ts";
import { WORKER_ONLY_TOOLS } from "../../tools/coordination/tool-groups.ts";
import type { Tool } from "../../tools/tool.ts";
import type { AgentUsage } from "../budget/agent-usage.ts";
import type { CallbackTask, CallbackTasks } from "../requests/callback-tasks.ts";
import type { AgentPoolOptions } from "./agent-pool-options.ts";
import { TIME_IS_UP } from "./agent-run.ts";
import { asToolError, treeOf } from "./agent-tasks.ts";

export interface CoordinationParts {
  /** The requesting agent; undefined: the main agent. */
  readonly agentId: string | undefined;
  readonly registry: Registry;
  readonly callbackTasks: CallbackTasks;
  readonly options: Pick<AgentPoolOptions, "agentSetup" | "workersRefused">;
  readonly ledger: AgentUsage;
  readonly stamp: Stamp;
  /** Returns the current tools of the requesting agent. */
  tools(): readonly Tool[];
  emitOf(taskId: string): Emit;
}

/** The maximum time to wait for a worker. Workers have their own limits. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

export function coordinationOf(parts: CoordinationParts): Coordination {
  /** Task ids of workers, or their steps as long as there is no task id. */
  const known = new Map<string, { taskId: string } | WorkerStep[]>();
  const emitStep = (taskId: string, step: WorkerStep): void => {
    void parts.emitOf(taskId)("troupe.subagent_step", { ...step });
  };
  return {
    refused: () => parts.options.workersRefused?.(),
    tools: () => parts.tools().map(({ name }) => name),
    step(workerId, step) {
      const one = known.get(workerId);
      if (one && "taskId" in one) emitStep(one.taskId, step);
      else known.set(workerId, [...(one ?? []), step]);
    },
    runWorker: (worker, signal) =>
      asToolError(
        runWorker(parts, worker, {
          signal,
          onId(taskId) {
            const early = known.get(worker.id);
            known.set(worker.id, { taskId });
            if (Array.isArray(early)) for (const step of early) emitStep(taskId, step);
          },
        }),
      ),
  };
}

interface WorkerState {
  reached?: keyof WorkerLimits;
  /** The result that it submitted. */
  submitted?: string;
  end?: AnswerEnd;
}

async function runWorker(
  parts: CoordinationParts,
  worker: WorkerSpec,
  call: { signal: AbortSignal; onId(taskId: string): void },
): Promise<WorkerEnd> {
  const { agentId, registry, callbackTasks, ledger, stamp } = parts;
  const { signal } = call;
  const state: WorkerState = {};
  const began = stamp.monotonic();
  const key = {
    ...defined({ parentId: agentId }),
    toolCallId: worker.parentCallId,
    agentDisplayName: worker.displayName,
  };
  const forget = callbackTasks.add(key, errandOf(parts, worker, state));
  try {
    const parent = agentId === undefined ? undefined : registry.get(agentId);
    const worktree = parent && treeOf(parent);
    const { id } = await registry.create({
      ...key,
      ...newTask(worker),
      ...defined({ model: parent?.spec.model, worktree }),
    });
    call.onId(id);
    const task = await waitForEnd(id, parts, { signal, toolCallId: worker.parentCallId });
    signal.throwIfAborted();
    const { turns, outputTokens } = ledger.own(id);
    return {
      agentId: id,
      ...outcomeOf(task, state),
      turns,
      outputTokens,
      durationMs: Math.round(stamp.monotonic() - began),
    };
  } finally {
    forget();
  }
}

function newTask({ id, role, task, tools, limits, displayName }: WorkerSpec) {
  return {
    name: id,
    kind: "agent",
    agentName: role,
    description: displayName,
    prompt: task,
    mode: "sync",
    multiTurn: false,
    tools: tools.filter((name) => !WORKER_ONLY_TOOLS.has(name)),
    limits: { turns: limits.turns, durationMs: limits.durationMs },
  } as const satisfies Partial<Parameters<Registry["create"]>[0]>;
}

/**
 * Waits until the worker is idle or has ended. Aborting the signal cancels the worker. Moving it to the background does
 * not end the wait.
 */
async function waitForEnd(
  id: string,
  { registry, agentId }: CoordinationParts,
  call: { signal: AbortSignal; toolCallId: string },
): Promise<TaskRecord> {
  const { signal, toolCallId } = call;
  const stop = (): void => void registry.cancel(id, { notice: "waits" }).catch(() => undefined);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      await registry.wait(id, { timeoutMs: MAX_WAIT_MS, signal, reader: { agentId, toolCallId } });
      signal.throwIfAborted();
      const task = registry.get(id);
      if (task && isIdleOrEnded(task.status)) return task;
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function errandOf(parts: CoordinationParts, worker: WorkerSpec, state: WorkerState): CallbackTask {
  return {
    async run(task, _io, asAgent) {
      const end = await asAgent({
        agentSetup: async () => {
          const agentSetup = await parts.options.agentSetup(task, definitionOf(worker));
          const tools = worker.provide(parts.tools()).map((tool) => recordSubmission(tool, state));
          const provider = withTimeLimit(agentSetup.model.provider, worker.limits.requestMs);
          return {
            ...agentSetup,
            model: { ...agentSetup.model, provider },
            promptAndTools: { system: worker.systemPrompt, tools },
          };
        },
        limitReached: () => limitOf(worker.limits, parts.ledger.own(task.id), state),
      });
      state.end = end;
      return result(end, state);
    },
  };
}

/** Builds a definition for the setup. The prompt and tools are replaced by the worker's own. */
function definitionOf({ role, displayName, systemPrompt, tools }: WorkerSpec): AgentDefinition {
  return {
    id: role,
    name: role,
    displayName,
    description: displayName,
    prompt: systemPrompt,
    tools,
    disallowedTools: [],
    readOnly: false,
    models: [],
    modelPolicy: "preferred",
    skills: [],
    userInvocable: false,
    infer: false,
    includeCustomInstructions: false,
    promptParts: [],
    source: "builtin",
  };
}

/** Records the arguments of a terminal tool as the worker's result. */
function recordSubmission(tool: Tool, state: WorkerState): Tool {
  if (!tool.endsAnswer) return tool;
  return {
    ...tool,
    bind(rawArguments) {
      const bound = tool.bind(rawArguments);
      return {
        access: bound.access,
        async run(context) {
          const taken = await bound.run(context);
          state.submitted ??= JSON.stringify(rawArguments ?? null);
          return taken;
        },
      };
    },
  };
}

function limitOf(
  limits: WorkerLimits,
  used: { readonly turns: number; readonly outputTokens: number },
  state: WorkerState,
): LimitReached | undefined {
  for (const key of ["turns", "outputTokens"] as const) {
    const [allowed, spent] = [limits[key], used[key]];
    if (spent < allowed) continue;
    state.reached = key;
    const unit = key === "turns" ? "turns" : "output tokens";
    const limit = key === "turns" ? "turns" : "tokens";
    return { limit, allowed, used: spent, message: `The worker has used ${spent} of ${allowed} ${unit}.` };
  }
  return undefined;
}

/** Returns the submitted result. An answer that was not submitted counts as a failure. */
function result(end: AnswerEnd, { submitted }: WorkerState): AnswerEnd {
  if (submitted !== undefined && end.kind !== "aborted") return { kind: "answered", response: submitted };
  if (end.kind !== "answered" && end.kind !== "empty") return end;
  const response = end.kind === "answered" ? end.response : "";
  return { kind: "failed", error: NO_RESULT, response };
}

function outcomeOf(
  task: TaskRecord,
  { end, reached, submitted }: WorkerState,
): Pick<WorkerEnd, "outcome" | "limit" | "error"> {
  if (submitted !== undefined) return { outcome: "done" };
  if (task.status === "cancelled") return { outcome: "cancelled" };
  switch (end?.kind) {
    case "answered":
    case "empty":
      return { outcome: "done" };
    case "limit": {
      const limit = reached ?? (end.message === TIME_IS_UP ? "durationMs" : undefined);
      // A limit shared with other agents is not the worker's own.
      return limit ? { outcome: "limit", limit } : { outcome: "error", error: end.message };
    }
    case "aborted":
      return { outcome: "cancelled" };
    default:
      return { outcome: "error", error: end?.error ?? task.error ?? "it never began" };
  }
}
