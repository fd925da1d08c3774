/** Calls that a server runs as tasks. They continue in the background, like background agents. */
import { deferred } from "../../../lib/deferred.ts";
import type { ToolResult } from "../../tool-error.ts";
import type { McpTaskStatus } from "./call-as-task.ts";

export interface McpTasks {
  /** Resolves with the text for the model: the id of the background call, or its result if it was awaited. */
  start(call: McpTaskCall, work: McpWork, signal: AbortSignal): Promise<ToolResult>;
}

export interface McpTaskCall {
  readonly serverName: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly toolCallId: string;
  /** Set when the server already runs it. `dropped` is called when it was stopped before it could be followed here. */
  readonly underWay?: { dropped(): void };
}

export type McpWork = (io: McpWorkPorts) => Promise<ToolResult>;

interface McpWorkPorts {
  /** Cancels it, on the server too. */
  readonly signal: AbortSignal;
  onStatus(status: McpTaskStatus): void;
  onProgress(text: string): void;
}

/** Runs an ordinary call until the server creates a task from it. The rest is then handed over. */
export async function untilTask(
  work: McpWork,
  foreground: { readonly signal: AbortSignal; onProgress(text: string): void },
  handOver: (rest: McpWork, underWay: { dropped(): void }) => Promise<ToolResult>,
): Promise<ToolResult> {
  const { signal } = foreground;
  const stop = new AbortController();
  const task = deferred<McpTaskStatus>();
  let last: McpTaskStatus | undefined;
  let background: McpWorkPorts | undefined;
  const done = work({
    signal: stop.signal,
    onProgress: (text) => (background ?? foreground).onProgress(text),
    onStatus(status) {
      last = status;
      background?.onStatus(status);
      task.resolve(status);
    },
  });
  done.catch(() => undefined);
  const stopped = forwardAbort(signal, stop);
  try {
    const result = await Promise.race([done, task.promise.then(() => undefined)]);
    if (result !== undefined) return result;
  } finally {
    stopped();
  }
  const dropped = (): void => stop.abort();
  return handOver(
    async (ports) => {
      background = ports;
      if (last !== undefined) ports.onStatus(last);
      const unlink = forwardAbort(ports.signal, stop);
      return done.finally(unlink);
    },
    { dropped },
  ).catch((error: unknown) => {
    if (background === undefined) dropped();
    throw error;
  });
}

/** Forwards an abort until the returned function is called. */
function forwardAbort(signal: AbortSignal, stop: AbortController): () => void {
  const forward = (): void => stop.abort(signal.reason);
  if (signal.aborted) forward();
  signal.addEventListener("abort", forward, { once: true });
  return () => signal.removeEventListener("abort", forward);
}
