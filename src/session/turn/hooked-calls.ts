import type { Hooks } from "../../hooks/fire.ts";
import type { HookInput, HookInputs, HookOutput, HookPoint } from "../../hooks/points.ts";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import type { BeforeCall, CallHooks } from "../../loop/run.ts";
import type { Emit } from "../../protocol/event.ts";
import type { ToolCall } from "../../protocol/message.ts";
import type { ToolPorts } from "../../tools/tool.ts";
import type { HookVerdict } from "../requests/permit.ts";
import type { PermissionRequest } from "../requests/requests.ts";

/** The hooks of a session, bound to its id and working directory. */
export interface BoundHooks {
  has(point: HookPoint): boolean;
  fire<P extends HookPoint>(point: P, input: HookInputs[P], signal?: AbortSignal): Promise<HookOutput<P>>;
}

/** Hook points about an agent as a whole. Their input names the session, so that programs find its log. */
const ABOUT_AGENTS: ReadonlySet<HookPoint> = new Set<HookPoint>(["subagentStart", "subagentStop"]);

interface HookScope {
  readonly sessionId: string;
  readonly cwd: string;
  /**
   * For a subagent: its session. `sessionId` then identifies the agent, which distinguishes its calls from the main
   * agent's.
   */
  readonly session?: string;
}

/** Binds hooks to a session. With `emit`, for a subagent: events of its hooks are emitted as the agent's own. */
export function bindSessionHooks(hooks: Hooks, { session, ...scope }: HookScope, emit?: Emit): BoundHooks {
  const sessionId = (point: HookPoint): string => (ABOUT_AGENTS.has(point) ? session : undefined) ?? scope.sessionId;
  return {
    has: (point) => hooks.has(point),
    // An input combines the common fields with those of this point.
    fire: (point, input, signal) =>
      hooks.fire(point, { ...scope, sessionId: sessionId(point), ...input } as HookInput<typeof point>, {
        ...defined({ signal, emit }),
      }),
  };
}

/** Returns the hook that adds metadata to calls of MCP servers. */
export function hookedMcpCalls(hooks: BoundHooks | undefined): Pick<ToolPorts, "beforeMcpCall"> {
  if (!hooks?.has("preMcpToolCall")) return {};
  return {
    beforeMcpCall: async (call, signal) => (await hooks.fire("preMcpToolCall", call, signal)).metaToUse,
  };
}

/**
 * Returns the hooks around tool calls, or undefined if there are none. `source` is the caller, if it is not an agent.
 */
export function hookedCalls(hooks: BoundHooks | undefined, source?: "mcp_app"): CallHooks | undefined {
  if (!hooks) return undefined;
  const concerned = ["preToolUse", "postToolUse", "postToolUseFailure"] as const;
  if (!concerned.some((point) => hooks.has(point))) return undefined;
  const inputOf = ({ name: toolName, arguments: toolArgs }: ToolCall) => ({
    toolName,
    toolArgs,
    ...defined({ source }),
  });
  return {
    async before(call, signal) {
      if (!hooks.has("preToolUse")) return { kind: "go" };
      return beforeCall(await hooks.fire("preToolUse", inputOf(call), signal));
    },
    async after(call, end, signal) {
      let failure = end.ok || end.code === "denied" || end.code === "rejected" ? undefined : end.message;
      let content: string | undefined;
      const context: (string | undefined)[] = [];
      if (end.ok && hooks.has("postToolUse")) {
        const toolResult = { resultType: "success" as const, textResultForLlm: end.content };
        const hookOutput = await hooks.fire("postToolUse", { ...inputOf(call), toolResult }, signal);
        context.push(hookOutput.additionalContext);
        if (hookOutput.modifiedResult?.resultType === "success") content = hookOutput.modifiedResult.textResultForLlm;
        else failure = hookOutput.modifiedResult?.textResultForLlm;
      }
      if (failure !== undefined && hooks.has("postToolUseFailure")) {
        const hookOutput = await hooks.fire("postToolUseFailure", { ...inputOf(call), error: failure }, signal);
        context.push(hookOutput.additionalContext);
      }
      const added = context.filter((text) => text !== undefined && text !== "").join("\n\n");
      return {
        ...defined({ content }),
        ...(end.ok && failure !== undefined && { failure }),
        ...(added !== "" && { context: added }),
      };
    },
  };
}

function beforeCall(hookOutput: HookOutput<"preToolUse">): BeforeCall {
  const reason = hookOutput.permissionDecisionReason;
  if (hookOutput.permissionDecision === "deny") {
    return { kind: "deny", message: `Denied by preToolUse hook: ${reason ?? "No reason provided"}` };
  }
  if (hookOutput.handled) return { kind: "answer", content: hookOutput.responseContent ?? "" };
  return {
    kind: "go",
    ...defined({ arguments: hookOutput.modifiedArgs }),
    ...(hookOutput.permissionDecision === "allow" && { approvedBy: "a preToolUse hook" }),
    ...(hookOutput.permissionDecision === "ask" && { ask: reason ?? "A hook asks the user to check this call." }),
    ...(hookOutput.additionalContext && { context: hookOutput.additionalContext }),
  };
}

/** Returns the hooks for permission requests, or undefined if there are none. */
export function hookVerdict(hooks: BoundHooks | undefined) {
  if (!hooks?.has("permissionRequest")) return undefined;
  return async (request: PermissionRequest, signal: AbortSignal): Promise<HookVerdict> => {
    const { toolName, toolInput } = asToolCall(request);
    const input = { hookName: "permissionRequest", toolName, toolInput, permissionSuggestions: [] } as const;
    const { behavior, message, interrupt } = await hooks.fire("permissionRequest", input, signal);
    if (behavior === "allow") return { kind: "allow", by: "a permissionRequest hook" };
    if (behavior !== "deny") return { kind: "none" };
    return { kind: "deny", ...defined({ message, interrupt }) };
  };
}

/** Describes a permission request to hooks as a tool call. */
function asToolCall(request: PermissionRequest): { toolName: string; toolInput: Json } {
  switch (request.kind) {
    case "shell":
      return { toolName: "bash", toolInput: { command: request.fullCommandText, description: request.intention } };
    case "write":
      return { toolName: "edit", toolInput: { path: request.fileName, diff: request.diff } };
    case "read":
      return { toolName: "view", toolInput: { path: request.path } };
    case "mcp":
      return { toolName: `${request.serverName}/${request.toolName}`, toolInput: request.args ?? {} };
    case "url":
      return { toolName: "web_fetch", toolInput: { url: request.url } };
    case "memory": {
      const { action, subject = "", fact, citations = "", direction = "upvote", reason = "" } = request;
      if (action === "vote") return { toolName: "vote_memory", toolInput: { fact, direction, reason } };
      return { toolName: "store_memory", toolInput: { subject, fact, citations } };
    }
    case "custom-tool":
      return { toolName: request.toolName, toolInput: request.args ?? {} };
    case "extension-permission-access":
    case "extension-env-access":
      return { toolName: request.kind, toolInput: { extensionName: request.extensionName } };
    case "hook":
      return { toolName: request.toolName, toolInput: request.toolArgs ?? {} };
  }
}
