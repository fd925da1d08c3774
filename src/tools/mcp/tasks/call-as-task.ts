/**
 * Calls that a server runs as tasks: it returns a task id, which is polled until the task has ended. Each wait is
 * limited here; the signal limits the whole. There are two generations: tasks that we request (2025-11-25), and tasks
 * that a server creates from a call (the extension of 2026-07-28).
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@modelcontextprotocol/client";
import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { isObject } from "../../../lib/json.ts";
import { cleanLine } from "../bounds.ts";
import { LIBRARY_MS } from "./call-clock.ts";
import type { TaskMessages } from "./task-messages.ts";

interface TaskContext {
  readonly client: Client;
  /** For each single request. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  onStatus(status: McpTaskStatus): void;
}

export interface McpTaskRequest extends TaskContext {
  readonly params: {
    readonly name: string;
    readonly arguments: Record<string, unknown>;
    readonly _meta?: Record<string, unknown>;
  };
  readonly ttlMs: number;
  readonly messages: Pick<TaskMessages, "watch">;
}

export interface McpTaskStatus {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  readonly statusMessage?: string;
  /** Progress, if the server reports it. */
  readonly progress?: number;
  readonly total?: number;
  /** Set when the status may be out of date. */
  readonly warning?: string;
  /** Sends a message to the running task; only set when the server supports it. */
  readonly steer?: (message: string) => Promise<void>;
}

/** Declared by clients that accept results of the kind `task`. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const MIN_POLL_MS = 100;
const MAX_POLL_MS = 5000;
const DEFAULT_POLL_MS = 500;
const CANCEL_MS = 2000;
const MAX_FAILURES = 3;

const task = z.object({
  taskId: z.string().min(1).max(512),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  statusMessage: z.string().optional(),
  pollInterval: z.number().optional(),
  pollIntervalMs: z.number().optional(),
});
type Task = z.infer<typeof task>;
const created = z.object({ task });
const anything = z.looseObject({});

/** Returns the result of the task. An abort cancels the task on the server and rejects immediately. */
export async function callAsTask(request: McpTaskRequest): Promise<unknown> {
  const { client, signal, timeoutMs, messages } = request;
  let known: McpTaskStatus | undefined;
  const tell = (status: McpTaskStatus): void => {
    const { progress, total } = known ?? {};
    known = { ...defined({ progress, total }), ...status };
    request.onStatus(known);
  };
  const watched = messages.watch(({ progress, total, message }) => {
    if (known === undefined) return;
    const words = message === undefined ? {} : { statusMessage: message };
    tell({ ...known, progress, ...defined({ total }), ...words });
  });
  const { _meta, ...rest } = request.params;
  const params = { ...rest, _meta: { ..._meta, progressToken: watched.token }, task: { ttl: request.ttlMs } };
  try {
    const first = await client.request({ method: "tools/call", params }, created, { timeout: timeoutMs, signal });
    const { taskId } = first.task;
    return await cancelling({ ...request, taskId }, async () => {
      const context = { ...request, onStatus: tell };
      await untilEnded(first.task, context, { states: ["working"], read: task, steer: steering(request, taskId) });
      // While the server waits for our input, it sends its requests in response to `tasks/result`.
      return client.request({ method: "tasks/result", params: { taskId } }, anything, { timeout: LIBRARY_MS, signal });
    });
  } finally {
    watched.stop();
  }
}

const detailed = task.extend({
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.looseObject({ message: z.string().optional() }).optional(),
  inputRequests: z.record(z.string().max(512), z.looseObject({ method: z.string() })).optional(),
});
type Detailed = z.infer<typeof detailed>;
type InputRequest = { readonly method: string; readonly params?: unknown };

export interface MadeTask extends TaskContext {
  /** The server's response to the call. */
  readonly first: unknown;
  /** Answers requests of the server during the task. */
  answer(request: InputRequest): Promise<unknown>;
}

/** Returns the result of a task that a server created from a call. */
export async function followTask(request: MadeTask): Promise<unknown> {
  const { client, signal, timeoutMs } = request;
  const first = detailed.parse(request.first);
  const { taskId } = first;
  const asked = new Set<string>();
  return cancelling({ ...request, taskId }, async () => {
    const end = await untilEnded<Detailed>(first, request, {
      states: ["working", "input_required"],
      read: detailed,
      async each({ inputRequests = {} }) {
        const open = Object.entries(inputRequests).filter(([key]) => !asked.has(key));
        if (open.length === 0) return;
        // Each key is answered once, however often it is listed.
        for (const [key] of open) asked.add(key);
        const answers = open.map(async ([key, input]) => [key, await request.answer(input as InputRequest)] as const);
        const inputResponses = Object.fromEntries(await Promise.all(answers));
        const update = { method: "tasks/update", params: { taskId, inputResponses } };
        await client.request(update, anything, { timeout: timeoutMs, signal });
      },
    });
    if (end.status === "completed" && end.result) return end.result;
    const why = end.error?.message ?? end.statusMessage ?? "it gave no result";
    throw new Error(`the task is ${end.status}: ${why}`);
  });
}

/** Notifies the server when the task is no longer wanted. */
async function cancelling<T>(
  { client, signal, taskId }: TaskContext & { taskId: string },
  work: () => Promise<T>,
): Promise<T> {
  const cancel = (): void => {
    const message = { method: "tasks/cancel", params: { taskId } };
    client.request(message, anything, { timeout: CANCEL_MS }).catch(() => undefined);
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    return await work();
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

interface PollOptions<T extends Task> {
  /** States in which polling continues. */
  readonly states: readonly Task["status"][];
  readonly read: z.ZodType<T>;
  readonly steer?: McpTaskStatus["steer"];
  /** Called with every non-final state. */
  each?(current: T): Promise<void>;
}

async function untilEnded<T extends Task>(first: T, context: TaskContext, watching: PollOptions<T>): Promise<T> {
  const { client, signal, timeoutMs, onStatus } = context;
  const { states, read, steer, each } = watching;
  const { taskId } = first;
  let current = first;
  let failures = 0;
  while (states.includes(current.status)) {
    onStatus(statusText(current, { steer, failures }));
    if (failures === 0) await each?.(current);
    const wanted = current.pollIntervalMs ?? current.pollInterval ?? DEFAULT_POLL_MS;
    await delay(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, wanted)), undefined, { signal });
    try {
      const asked = { method: "tasks/get", params: { taskId } };
      current = await client.request(asked, read, { timeout: timeoutMs, signal });
      failures = 0;
    } catch (error) {
      // A single lost answer does not end the task.
      if (signal.aborted || ++failures >= MAX_FAILURES) throw error;
      continue;
    }
    if (current.taskId !== taskId) throw new Error("the server answered about another task");
  }
  onStatus(statusText(current, { steer: undefined, failures }));
  return current;
}

function statusText(
  { taskId, status, statusMessage }: Task,
  { steer, failures }: { steer: McpTaskStatus["steer"]; failures: number },
): McpTaskStatus {
  return {
    taskId: cleanLine(taskId, 512),
    status,
    ...(statusMessage !== undefined && { statusMessage: cleanLine(statusMessage) }),
    ...(failures > 0 && { warning: `${failures} of its answers were lost` }),
    ...defined({ steer }),
  };
}

/** Not part of the core protocol: a server announces it in its capabilities. */
function steering({ client, timeoutMs, signal }: McpTaskRequest, taskId: string): McpTaskStatus["steer"] {
  const tasks: unknown = client.getServerCapabilities()?.tasks;
  if (!isObject(tasks) || !isObject(tasks.steer)) return undefined;
  return async (message) => {
    const steer = { method: "tasks/steer", params: { taskId, message } };
    await client.request(steer, anything, { timeout: timeoutMs, signal });
  };
}
