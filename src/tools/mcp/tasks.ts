/**
 * Calls that a server works on as tasks (protocol 2025-11-25): it answers with the name of a task, which is asked about
 * until it has ended. Each wait is bounded here; the whole by the signal.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@modelcontextprotocol/client";
import * as z from "zod";
import { isObject } from "../../lib/json.ts";
import { cleanLine } from "./bounds.ts";
import { LIBRARY_MS } from "./call-clock.ts";

export interface TaskRequest {
  readonly client: Client;
  readonly params: {
    readonly name: string;
    readonly arguments: Record<string, unknown>;
    readonly _meta?: Record<string, unknown>;
  };
  /** For each single request. */
  readonly timeoutMs: number;
  readonly ttlMs: number;
  readonly signal: AbortSignal;
  onStatus(status: McpTaskStatus): void;
}

export interface McpTaskStatus {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  readonly statusMessage?: string;
  /** Tells the task something while it works; only where the server says it takes that. */
  readonly steer?: (message: string) => Promise<void>;
}

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
});
const created = z.object({ task });
const anything = z.looseObject({});

/** The result of the task, as the server gives it. Abort cancels the task over there and rejects at once. */
export async function callAsTask(request: TaskRequest): Promise<unknown> {
  const { client, signal, timeoutMs } = request;
  const params = { ...request.params, task: { ttl: request.ttlMs } };
  const first = await client.request({ method: "tools/call", params }, created, { timeout: timeoutMs, signal });
  const { taskId } = first.task;
  const cancel = (): void => {
    const message = { method: "tasks/cancel", params: { taskId } };
    client.request(message, anything, { timeout: CANCEL_MS }).catch(() => undefined);
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    await untilEnded(first.task, request);
    // While the server waits for an answer of ours, it asks on the way to its result.
    return await client.request({ method: "tasks/result", params: { taskId } }, anything, {
      timeout: LIBRARY_MS,
      signal,
    });
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

async function untilEnded(first: z.infer<typeof task>, request: TaskRequest): Promise<void> {
  const { client, signal, timeoutMs } = request;
  const { taskId } = first;
  const steer = steering(request, taskId);
  let current = first;
  let failures = 0;
  while (current.status === "working") {
    request.onStatus(shown(current, steer));
    const wanted = current.pollInterval ?? DEFAULT_POLL_MS;
    await delay(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, wanted)), undefined, { signal });
    try {
      const asked = { method: "tasks/get", params: { taskId } };
      current = await client.request(asked, task, { timeout: timeoutMs, signal });
      failures = 0;
    } catch (error) {
      // One answer that got lost is no end of the task.
      if (signal.aborted || ++failures >= MAX_FAILURES) throw error;
      continue;
    }
    if (current.taskId !== taskId) throw new Error("the server answered about another task");
  }
  request.onStatus(shown(current));
}

function shown({ taskId, status, statusMessage }: z.infer<typeof task>, steer?: McpTaskStatus["steer"]): McpTaskStatus {
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage: cleanLine(statusMessage) }),
    ...(steer && { steer }),
  };
}

/** Not part of the protocol's core: a server that can do it says so among its capabilities. */
function steering({ client, timeoutMs, signal }: TaskRequest, taskId: string): McpTaskStatus["steer"] {
  const tasks: unknown = client.getServerCapabilities()?.tasks;
  if (!isObject(tasks) || !isObject(tasks.steer)) return undefined;
  return async (message) => {
    const steer = { method: "tasks/steer", params: { taskId, message } };
    await client.request(steer, anything, { timeout: timeoutMs, signal });
  };
}
