/** Calls that a server only takes as tasks: they go on by themselves, like agents in the background. */
import type { ToolResult } from "../tool.ts";
import type { McpTaskStatus } from "./tasks.ts";

export interface McpTasks {
  /** Resolves with what the model reads now: the id under which the call goes on, or its result where it was awaited. */
  start(call: McpTaskCall, work: McpWork, signal: AbortSignal): Promise<ToolResult>;
}

export interface McpTaskCall {
  readonly serverName: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly toolCallId: string;
}

export type McpWork = (io: McpWorkPorts) => Promise<ToolResult>;

interface McpWorkPorts {
  /** Cancels it, on the server too. */
  readonly signal: AbortSignal;
  onStatus(status: McpTaskStatus): void;
  onProgress(text: string): void;
}
