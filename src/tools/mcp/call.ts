/** One tool call on an open connection: limited in time, cancelled immediately on abort, with readable errors. */
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { isObject, type Json } from "../../lib/json.ts";
import { ToolError } from "../tool-error.ts";
import { cleanLine } from "./bounds.ts";
import { answerInput, type McpAnswerers, type ServerCall } from "./requests.ts";
import type { McpServerConfig, McpToolDefinition } from "./server.ts";
import { callAsTask, followTask, type McpTaskStatus } from "./tasks/call-as-task.ts";
import { type CallClock, CallTimeout, callClock, LIBRARY_MS } from "./tasks/call-clock.ts";
import type { TaskMessages } from "./tasks/task-messages.ts";

export interface McpCall {
  readonly definition: McpToolDefinition;
  readonly arguments: Record<string, Json>;
  readonly toolCallId?: string;
  /** Sent as `_meta`. */
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  onProgress?(text: string): void;
  onTask?(status: McpTaskStatus): void;
}

/** The parts of a connection that a call uses. */
export interface CallConnection {
  readonly client: Client;
  readonly tasks: TaskMessages;
  readonly config: McpServerConfig;
  readonly answerers: McpAnswerers;
  diagnosis(): string;
  /**
   * Registers the call while it runs, so that the server can send requests on its behalf. Returns the end of the
   * registration.
   */
  begin(call: ServerCall): () => void;
}

const MAX_VISITS = 5;
const PROGRESS_FACTOR = 10;
const TASK_TOTAL_MS = 60 * 60 * 1000;
const PROGRESS_EVERY_MS = 200;
/** Keys that belong to the protocol; callers cannot set them. */
const RESERVED_META = /^(io\.modelcontextprotocol\/|progressToken$)/;

export async function callTool(connection: CallConnection, call: McpCall): Promise<CallToolResult> {
  const { config } = connection;
  const isTask = call.definition.taskSupport === "required";
  const totalMs = isTask ? Math.max(TASK_TOTAL_MS, config.timeoutMs) : config.timeoutMs * PROGRESS_FACTOR;
  const clock = callClock({ silenceMs: config.timeoutMs, totalMs });
  const signal = AbortSignal.any([call.signal, clock.signal]);
  const asking: ServerCall = {
    toolCallId: call.toolCallId,
    answerers: connection.answerers,
    signal,
    samples: { count: 0 },
    whileAsking: (work) => clock.pauseFor(work),
  };
  const end = connection.begin(asking);
  const under = { call, clock, signal, asking };
  try {
    return await Promise.race([
      isTask ? asTask(connection, under, totalMs) : plainly(connection, under),
      rejectOnAbort(signal),
    ]);
  } catch (error) {
    throw await worded(error, { connection, call, clock });
  } finally {
    clock.stop();
    end();
  }
}

interface Under {
  readonly call: McpCall;
  readonly clock: CallClock;
  readonly signal: AbortSignal;
  readonly asking: ServerCall;
}

async function plainly(connection: CallConnection, under: Under): Promise<CallToolResult> {
  const { call, clock, signal, asking } = under;
  const { client, config, tasks } = connection;
  const { name, inputSchema } = call.definition;
  const request = () =>
    client.callTool(paramsOf(call), {
      signal,
      timeout: LIBRARY_MS,
      onprogress: progressReader(call, clock),
      toolDefinition: { name, inputSchema: { ...inputSchema, type: "object" } },
    });
  const result = await afterVisits(request, { call: asking, serverName: config.name });
  const made = tasks.taskIn(result);
  if (made === undefined) return result;
  clock.extend(TASK_TOTAL_MS);
  return asResult(
    await followTask({
      client,
      first: made,
      timeoutMs: config.timeoutMs,
      signal,
      onStatus: statusReporter(under),
      answer: (input) => answerInput(input, { call: asking, serverName: config.name }),
    }),
  );
}

/** Servers of 2025-11-25 refuse a call until the user has visited an address. After the visit the call is repeated. */
async function afterVisits<T>(request: () => Promise<T>, asked: { call: ServerCall; serverName: string }): Promise<T> {
  try {
    return await request();
  } catch (error) {
    const { UrlElicitationRequiredError } = await import("@modelcontextprotocol/client");
    if (!(error instanceof UrlElicitationRequiredError) || !asked.call.answerers.elicit) throw error;
    if (error.elicitations.length === 0) throw error;
    for (const params of error.elicitations.slice(0, MAX_VISITS)) {
      const answer = await answerInput({ method: "elicitation/create", params: { ...params, mode: "url" } }, asked);
      if (!isObject(answer) || answer.action !== "accept") throw error;
    }
    return request();
  }
}

async function asTask(
  { client, config, tasks }: CallConnection,
  under: Under,
  totalMs: number,
): Promise<CallToolResult> {
  return asResult(
    await callAsTask({
      client,
      params: paramsOf(under.call),
      timeoutMs: config.timeoutMs,
      ttlMs: totalMs,
      signal: under.signal,
      messages: tasks,
      onStatus: statusReporter(under),
    }),
  );
}

const statusReporter = ({ call, clock }: Under) => {
  let shownAt = Number.NEGATIVE_INFINITY;
  let last = "";
  return (status: McpTaskStatus): void => {
    clock.touch();
    // Reports a change of state immediately, and progress at intervals.
    const state = `${status.status} ${status.warning ?? ""}`;
    if (state === last && performance.now() - shownAt < PROGRESS_EVERY_MS) return;
    shownAt = performance.now();
    last = state;
    call.onTask?.(status);
    if (status.statusMessage !== undefined) call.onProgress?.(status.statusMessage);
  };
};

async function asResult(result: unknown): Promise<CallToolResult> {
  const { isCallToolResult } = await import("@modelcontextprotocol/client");
  if (!isCallToolResult(result)) throw new Error("the task ended without a valid result");
  return result;
}

function paramsOf({ definition, arguments: given, meta = {} }: McpCall): {
  name: string;
  arguments: Record<string, unknown>;
  _meta?: Record<string, unknown>;
} {
  const kept = Object.entries(meta).filter(([key]) => !RESERVED_META.test(key));
  return { name: definition.name, arguments: given, ...(kept.length > 0 && { _meta: Object.fromEntries(kept) }) };
}

/** Every progress message resets the clock; only some are shown. */
function progressReader(
  call: McpCall,
  clock: CallClock,
): (progress: { progress: number; total?: number | undefined; message?: string | undefined }) => void {
  let shownAt = Number.NEGATIVE_INFINITY;
  return ({ progress, total, message }) => {
    clock.touch();
    if (performance.now() - shownAt < PROGRESS_EVERY_MS) return;
    shownAt = performance.now();
    const words = cleanLine(message);
    const count = total === undefined ? String(progress) : `${progress}/${total}`;
    call.onProgress?.(words === "" ? count : `${words} (${count})`);
  };
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function worded(
  error: unknown,
  { connection, call, clock }: { connection: CallConnection; call: McpCall; clock: CallClock },
): Promise<unknown> {
  if (call.signal.aborted) return call.signal.reason;
  const server = `The MCP server ${connection.config.name}`;
  const over: unknown = clock.signal.reason;
  if (over instanceof CallTimeout) {
    const advice = "It is unknown what the call has done. The timeout of the server can be raised in its settings.";
    return new ToolError(`${server} ${over.message} and the call was cancelled. ${advice}`, {
      code: "timeout",
      cause: error,
    });
  }
  const { SdkError, SdkErrorCode } = await import("@modelcontextprotocol/client");
  if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed) {
    const why = connection.diagnosis() === "" ? "" : ` (${connection.diagnosis()})`;
    return new ToolError(
      `${server} ended during this call${why}. It is unknown what the call has done. The next call starts the server again.`,
      { cause: error },
    );
  }
  const said = cleanLine(error instanceof Error ? error.message : String(error), 1000);
  return new ToolError(`${server} refused the call or failed. Its message, as data: ${said}`, { cause: error });
}
