/** Checks a call of an MCP app with the same hooks as a model's call, and with the rules that deny the tool. */

import type { CallToolResult } from "@modelcontextprotocol/client";
import { defined } from "../../lib/defined.ts";
import { isObject, type Json } from "../../lib/json.ts";
import type { BeforeCall, CallEnd } from "../../loop/run.ts";
import { decide } from "../../permissions/decide.ts";
import type { Decision, Policy } from "../../permissions/policy.ts";
import { permissionRequest } from "../../permissions/request.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ToolCall } from "../../protocol/message.ts";
import type { Access } from "../../protocol/permission.ts";
import { judgeUnasked } from "../../session/requests/permit.ts";
import { permitOutsideCall } from "../../session/requests/permit-outside-call.ts";
import type { PermissionRequest } from "../../session/requests/requests.ts";
import type { Session } from "../../session/session.ts";
import { hookedCalls, hookVerdict } from "../../session/turn/hooked-calls.ts";
import { toToolResult } from "../../tools/mcp/result.ts";
import type { McpServerConfig, McpToolDefinition } from "../../tools/mcp/server.ts";
import { ToolError } from "../../tools/tool-error.ts";

type Arguments = Readonly<Record<string, Json>>;

export interface GuardedCall {
  readonly session: Session;
  readonly config: McpServerConfig;
  readonly definition: McpToolDefinition;
  /** The tool's name for models. */
  readonly toolName: string;
  readonly arguments: Arguments;
  readonly policy: Policy;
  readonly signal: AbortSignal;
}

interface Admitted {
  readonly toolCallId: string;
  /** The arguments to call it with. */
  readonly arguments: Arguments;
  /** A hook's answer, in place of the tool's. */
  readonly answer?: CallToolResult;
  /**
   * Runs the hooks after the call and returns the result, which they may replace. Their messages for a model are
   * dropped.
   */
  ended(result: CallToolResult): Promise<CallToolResult>;
  failed(error: unknown): Promise<void>;
}

/** Throws if a rule, a hook or the user denies the call. Then nothing has been called. */
export async function admitAppCall(guarded: GuardedCall): Promise<Admitted> {
  const { session, toolName: name, signal } = guarded;
  const around = hookedCalls(session.permissions.hooks, "mcp_app");
  const made: ToolCall = { toolCallId: session.record.stamp.id("call"), name, arguments: { ...guarded.arguments } };
  const before: BeforeCall = (await around?.before(made, signal)) ?? { kind: "go" };
  signal.throwIfAborted();
  if (before.kind === "deny") throw new TroupeError("usage", before.message);
  const given = before.kind === "go" ? changedArguments(guarded, before.arguments) : guarded.arguments;
  const call: ToolCall = { ...made, arguments: { ...given } };
  const after = async (end: CallEnd) => (signal.aborted ? undefined : await around?.after(call, end, signal));
  const admitted: Admitted = {
    toolCallId: call.toolCallId,
    arguments: given,
    async ended(result) {
      const end = endOf(result, guarded);
      const hookOutput = await after(end);
      if (!end.ok || !hookOutput) return result;
      if (hookOutput.failure !== undefined) return { ...inWords(hookOutput.failure), isError: true };
      return hookOutput.content === undefined ? result : inWords(hookOutput.content);
    },
    async failed(error) {
      await after(failureOf(error));
    },
  };
  if (before.kind === "answer") return { ...admitted, answer: inWords(before.content) };
  if (before.ask !== undefined) await requireAgreement(guarded, { toolArgs: call.arguments, hookMessage: before.ask });
  await requireAllowed(guarded, given);
  return admitted;
}

function changedArguments({ toolName, arguments: given }: GuardedCall, changed: Json | undefined): Arguments {
  if (changed === undefined) return given;
  if (!isObject(changed))
    throw new TroupeError("failed", `A hook returned arguments for ${toolName} that are not an object.`);
  return changed as Record<string, Json>;
}

async function requireAgreement(
  { session, toolName, signal }: GuardedCall,
  { toolArgs, hookMessage }: { toolArgs: Json; hookMessage: string },
): Promise<void> {
  const access: Access = { kind: "hook", toolName, toolArgs, hookMessage };
  if (await permitOutsideCall(session, access, signal)) return;
  throw new TroupeError(
    "usage",
    `A hook requires the approval of the user, and no user could be asked: ${hookMessage}`,
  );
}

/** Throws if a rule or a hook denies the call. It is not asked about, because the app's user requested it. */
async function requireAllowed(guarded: GuardedCall, given: Arguments): Promise<void> {
  const { session, definition, toolName, policy, signal } = guarded;
  const access: Access = {
    kind: "mcp",
    serverName: definition.server,
    toolName: definition.name,
    toolTitle: definition.title ?? definition.name,
    ...(definition.description && { toolDescription: definition.description }),
    args: { ...given },
    readOnly: false,
  };
  const question = { access, toolName, cwd: session.workspace.cwd };
  const ruled = decide(policy, question);
  const asked: Decision = { decision: "allow", by: "default", reason: "the user of the app asked for it" };
  const hookDecision = hookVerdict(session.permissions.hooks);
  const ports = { emit: session.record.emit, broker: session.requests, signal, ...defined({ hookDecision }) };
  const verdict = await judgeUnasked(ports, {
    question,
    decision: ruled.decision === "deny" ? ruled : asked,
    // The wire's request as the broker's type: both come from the same table.
    request: permissionRequest(question) as PermissionRequest,
  });
  if (!verdict?.allowed) {
    throw new TroupeError("usage", verdict?.message ?? `The call is denied: ${verdict?.reason ?? ruled.reason}.`);
  }
}

const inWords = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });

/** Converts the result as for a model. */
function endOf(result: CallToolResult, { config, definition }: GuardedCall): CallEnd {
  try {
    return { ok: true, content: toToolResult(result, { config, toolName: definition.name }).content };
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): Extract<CallEnd, { ok: false }> {
  const message = error instanceof Error ? error.message : String(error);
  return { ok: false, code: error instanceof ToolError ? error.code : "failure", message };
}
