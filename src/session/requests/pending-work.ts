/**
 * Work that a process left when it ended: calls that waited for a client, and their requests.
 * Only calls that certainly have not run here are resumed: a call without a permission yet, a question, a client tool, and
 * one that waits for an agent on another worker.
 */
import { sep } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { REDACTED } from "../../lib/redact/redact.ts";
import type { PendingCall, PendingTurn } from "../../loop/run.ts";
import type { EventData, SessionEvent } from "../../protocol/event.ts";
import type { ToolCall } from "../../protocol/message.ts";
import { rejoiningTool } from "../../tools/agents/task.ts";
import type { Conversation } from "../conversation.ts";
import { isCanvasTool } from "./canvas-tool-names.ts";
import { externalTool } from "./external-tools.ts";
import type { PendingRequest } from "./pending-requests.ts";

export interface PendingWork {
  readonly turn: PendingTurn;
  readonly requests: readonly PendingRequest[];
}

/** The session's current working directory. */
export interface CurrentFolder {
  readonly cwd: string;
  /** Whether this was the session's own working folder on another machine. What was asked there holds here. */
  isOwnFolder?(folder: string): boolean;
}

/** Returns undefined if nothing is pending. */
export function pendingWork(
  events: readonly SessionEvent[],
  conversation: Conversation,
  { cwd, isOwnFolder }: CurrentFolder,
): PendingWork | undefined {
  const { openTurn: turnId, openCalls } = conversation;
  const open = openCalls.filter(({ started, isGone }) => started && !isGone).map(({ call }) => call);
  if (turnId === undefined || open.length === 0) return undefined;
  const ids = new Set(open.map(({ toolCallId }) => toolCallId));
  const asked = events.findLastIndex((event) => isReplyWith(event, ids));
  const reply = events[asked];
  if (reply?.type !== "assistant.message") return undefined;
  const traces = tracesOf(events.slice(asked), ids);
  const going = open.flatMap((call) => goingOn(call, traces.get(call.toolCallId)) ?? []);
  if (going.length === 0) return undefined;
  const folder = folderOf(events) ?? cwd;
  const here = (request: PendingRequest): PendingRequest => {
    if (folder === cwd) return request;
    if (!isOwnFolder?.(folder)) return { ...request, isFromOtherFolder: true };
    return { ...request, data: withFolder(request.data, { from: folder, to: cwd }) };
  };
  return {
    turn: { turnId, content: reply.data.content, calls: going.map(({ left }) => left) },
    requests: going.flatMap(({ requests }) => requests.map(here)),
  };
}

/** Replaces a folder by another one in the paths of a request. */
function withFolder(data: object, { from, to }: { readonly from: string; readonly to: string }): object {
  return JSON.parse(JSON.stringify(data), (_, value: unknown) => {
    if (typeof value !== "string") return value;
    if (value === from) return to;
    return value.replaceAll(`${from}${sep}`, `${to}${sep}`);
  }) as object;
}

/** Returns the session's last working directory according to the log. */
function folderOf(events: readonly SessionEvent[]): string | undefined {
  let folder: string | undefined;
  for (const event of events) {
    if (event.type === "session.context_changed") folder = event.data.cwd;
    else if (event.type === "session.start" || event.type === "session.resume") {
      folder = event.data.context?.cwd ?? folder;
    }
  }
  return folder;
}

function isReplyWith(event: SessionEvent, ids: ReadonlySet<string>): boolean {
  if (event.type !== "assistant.message" || event.agentId !== undefined) return false;
  return event.data.toolRequests.some(({ toolCallId }) => ids.has(toolCallId));
}

type Requested = EventData<"permission.requested">;
type Result = EventData<"permission.completed">["result"];

/** The log's facts about one call after its start. */
interface Trace {
  readonly permissions: Map<string, { readonly request: Requested["permissionRequest"]; result?: Result }>;
  readonly questions: EventData<"troupe.question">[];
  external?: EventData<"external_tool.requested">;
  /** It is permitted and a client runs it. */
  isClientsOwn: boolean;
  /** The agent that it waits for, if that works without this process. */
  task?: string;
  arguments?: Json;
}

function tracesOf(events: readonly SessionEvent[], ids: ReadonlySet<string>): Map<string, Trace> {
  const newTrace = (): Trace => ({ permissions: new Map(), questions: [], isClientsOwn: false });
  const traces = new Map([...ids].map((id) => [id, newTrace()]));
  const of = (toolCallId: string | undefined): Trace | undefined => traces.get(toolCallId ?? "");
  for (const event of events) {
    if (event.agentId !== undefined) continue;
    switch (event.type) {
      case "permission.requested": {
        const { requestId, permissionRequest: request, resolvedByHook } = event.data;
        if (!resolvedByHook) of(request.toolCallId)?.permissions.set(requestId, { request });
        break;
      }
      case "permission.completed": {
        const { requestId, result } = event.data;
        for (const { permissions } of traces.values()) {
          const asked = permissions.get(requestId);
          if (asked) asked.result = result;
        }
        break;
      }
      case "troupe.permission": {
        const trace = of(event.data.toolCallId);
        const { kind, toolName, decision } = event.data;
        const isClients = kind === "custom-tool" && !isCanvasTool(toolName);
        if (trace && isClients) trace.isClientsOwn = decision === "allowed";
        break;
      }
      case "troupe.task_created": {
        const { toolCallId, taskId, parentId, placement } = event.data;
        const trace = parentId === undefined && placement ? of(toolCallId) : undefined;
        if (trace) trace.task = taskId;
        break;
      }
      case "external_tool.requested": {
        const trace = of(event.data.toolCallId);
        if (trace) trace.external = event.data;
        break;
      }
      case "troupe.question":
        of(event.data.toolCallId)?.questions.push(event.data);
        break;
      case "troupe.call_changed": {
        const trace = of(event.data.toolCallId);
        if (trace) trace.arguments = event.data.arguments;
        break;
      }
      default:
    }
  }
  return traces;
}

interface Continuation {
  readonly left: PendingCall;
  readonly requests: readonly PendingRequest[];
}

function goingOn(made: ToolCall, trace: Trace | undefined): Continuation | undefined {
  if (!trace) return undefined;
  const { toolCallId } = made;
  const call = trace.arguments === undefined ? made : { ...made, arguments: trace.arguments };
  const { name } = call;
  if (trace.task !== undefined) return { left: { call, tool: rejoiningTool(trace.task) }, requests: [] };
  const permitted = externalTool({ name, skipPermission: true });
  if (trace.external) {
    const { requestId, ...data } = trace.external;
    return { left: { call, tool: permitted }, requests: [{ kind: "external_tool", requestId, toolCallId, data }] };
  }
  // With a redacted secret, it is no longer the call that the model made.
  if (REDACTED.test(JSON.stringify(call.arguments))) return undefined;
  if (trace.isClientsOwn) return { left: { call, tool: permitted }, requests: [] };
  const question = trace.questions.at(-1);
  if (question) return { left: { call }, requests: [{ ...question, data: {} }] };
  return withPermissions(call, trace);
}

/**
 * Resumes a call whose last permission request is undecided. A request that was cancelled while its call stayed open
 * was cancelled by the end of the process.
 */
function withPermissions(call: ToolCall, { permissions }: Trace): Continuation | undefined {
  const { toolCallId, name } = call;
  const asked = [...permissions];
  const isPending = ({ result }: { result?: Result }): boolean => result === undefined || result.kind === "cancelled";
  const last = asked.at(-1)?.[1];
  if (!last || !isPending(last) || asked.slice(0, -1).some(([, one]) => isPending(one))) return undefined;
  const own = asked.map(([, { request }]) => request).find((request) => isOfClient(request, name));
  const hook = asked.map(([, { request }]) => request).find(({ kind }) => kind === "hook");
  const otherwise = own && externalTool({ name, description: own.toolDescription });
  const ask = hook?.kind === "hook" ? (hook.hookMessage ?? "") : undefined;
  return {
    left: { call, ...defined({ otherwise, ask }) },
    requests: asked.map(([requestId, { request, result }]) => ({
      kind: "permission" as const,
      requestId,
      toolCallId,
      data: { permissionRequest: request },
      ...(result && result.kind !== "cancelled" && { answer: result }),
    })),
  };
}

type OfClient = Extract<Requested["permissionRequest"], { kind: "custom-tool" }>;
const isOfClient = (request: Requested["permissionRequest"], name: string): request is OfClient =>
  request.kind === "custom-tool" && request.toolName === name && !isCanvasTool(name);
