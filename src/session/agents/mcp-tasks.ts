/** MCP calls that continue in the background, as tasks of the registry. */
import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import type { AnswerEnd } from "../../tasks/ports.ts";
import type { Registry } from "../../tasks/registry.ts";
import { isIdleOrEnded } from "../../tasks/task-state.ts";
import type { McpTaskProgress } from "../../tools/agents/task-port.ts";
import type { McpTaskCall, McpTasks, McpWork } from "../../tools/mcp/tasks/background.ts";
import type { McpTaskStatus } from "../../tools/mcp/tasks/call-as-task.ts";
import { ToolError, type ToolResult } from "../../tools/tool-error.ts";
import type { CallbackTask, CallbackTasks } from "../requests/callback-tasks.ts";
import { asToolError } from "./agent-tasks.ts";

interface McpTasksParts {
  readonly agentId: string | undefined;
  readonly registry: Registry;
  readonly callbackTasks: CallbackTasks;
}

const AGENT_NAME = "mcp-task";
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;
/** A call is reported as started after this long, even if the server has sent nothing. */
const PATIENCE_MS = 10_000;

export function mcpTasksOf(parts: McpTasksParts): McpTasks {
  return { start: (call, work, signal) => asToolError(start(parts, { call, work, signal })) };
}

async function start(
  parts: McpTasksParts,
  { call, work, signal }: { call: McpTaskCall; work: McpWork; signal: AbortSignal },
): Promise<ToolResult> {
  const { agentId, registry, callbackTasks } = parts;
  const { toolCallId, serverName, toolName } = call;
  const key = {
    ...defined({ parentId: agentId }),
    toolCallId,
    agentDisplayName: clip(`${serverName}/${toolName}`, 200),
  };
  const announced = new AbortController();
  let hasBegun = false;
  const onBegun = (): void => {
    hasBegun = true;
    announced.abort();
  };
  let isRun = false;
  const run: McpWork = (io) => {
    isRun = true;
    return work(io);
  };
  const forget = callbackTasks.add(key, errandOf(run, { onBegun, onEnd: () => forget() }));
  // A notice may arrive after an agent's last model call, so an agent waits for its calls.
  const mode = agentId === undefined ? "background" : "sync";
  const { id, queued } = await registry
    .create({
      ...key,
      name: toolName,
      kind: "mcp-task",
      agentName: AGENT_NAME,
      description: key.agentDisplayName,
      prompt: JSON.stringify(call.arguments),
      mode,
      multiTurn: false,
      tools: [],
    })
    .catch((error: unknown) => {
      forget();
      throw error;
    });
  const { underWay } = call;
  if (underWay) {
    const rested = registry.wait(id, { timeoutMs: MAX_WAIT_MS }).catch(() => undefined);
    void rested.then(() => isRun || underWay.dropped());
  }
  if (mode === "sync") return waitedFor(id, parts, { signal, toolCallId });
  // Also ends by abort: the server has started the task, or the answer was stopped.
  const known = AbortSignal.any([signal, announced.signal]);
  if (!queued) await registry.wait(id, { timeoutMs: PATIENCE_MS, signal: known }).catch(() => undefined);
  signal.throwIfAborted();
  // A call that the server rejects at once never became a task: report it as failed.
  if (registry.get(id)?.status === "failed" && !hasBegun) return waitedFor(id, parts, { signal, toolCallId });
  return { content: announcementText(id, call, queued) };
}

async function waitedFor(
  id: string,
  { registry, agentId }: McpTasksParts,
  call: { signal: AbortSignal; toolCallId: string },
): Promise<ToolResult> {
  const { signal, toolCallId } = call;
  const stop = (): void => void registry.cancel(id, { notice: "waits" }).catch(() => undefined);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await registry.wait(id, { timeoutMs: MAX_WAIT_MS, signal, reader: { agentId, toolCallId } });
  } finally {
    signal.removeEventListener("abort", stop);
  }
  signal.throwIfAborted();
  const task = registry.get(id);
  const { answers, error } = await registry.report(id, { viewer: agentId });
  if (task?.status === "completed") return { content: answers.at(-1)?.response ?? "" };
  const reason = task && isIdleOrEnded(task.status) ? (error ?? "it was stopped") : "it did not end in time";
  throw new ToolError(`The call failed: ${reason}`);
}

function errandOf(work: McpWork, on: { onBegun(): void; onEnd(): void }): CallbackTask {
  let steer: McpTaskStatus["steer"];
  return {
    async run(_task, io): Promise<AnswerEnd> {
      try {
        const { content, images = [] } = await work({
          signal: io.signal,
          onStatus(status) {
            steer = status.steer;
            io.activity(activityOf(status));
            io.mcpTask(progressOf(status));
            on.onBegun();
          },
          onProgress: (text) => io.activity(text),
        });
        const left = images.length === 0 ? "" : `\n\n[${images.length} images are left out.]`;
        return { kind: "answered", response: `${content}${left}` };
      } catch (error) {
        if (io.signal.aborted) return { kind: "aborted" };
        if (error instanceof ToolError) return { kind: "failed", error: error.message };
        throw error;
      } finally {
        on.onEnd();
      }
    },
    get tell() {
      return steer;
    },
  };
}

function progressOf(status: McpTaskStatus): Omit<McpTaskProgress, "updatedAt"> {
  const { taskId, status: state, statusMessage: message, progress, total, warning } = status;
  return {
    taskId,
    status: state,
    ...defined({ message, progress, total, warning }),
  };
}

function activityOf({ status, statusMessage, progress, total }: McpTaskStatus): string {
  const count = progress === undefined ? "" : ` (${progress}${total === undefined ? "" : `/${total}`})`;
  return `${statusMessage === undefined ? status : `${status}: ${statusMessage}`}${count}`;
}

/** The text of a background call. Its first two sentences match those for a background agent. */
function announcementText(id: string, { serverName, toolName }: McpTaskCall, queued: boolean): string {
  const waits = queued ? " All places are taken: it is queued and starts by itself when one is free." : "";
  return (
    `MCP task started in background with agent_id: ${id}. You'll be notified when it completes. ` +
    `It is the call of ${clip(toolName, 100)} on the server ${serverName}; read_agent has its result, stop_agent cancels it.${waits}`
  );
}
