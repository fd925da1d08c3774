/**
 * The points at which hooks run: the input and the allowed output of each. Inputs are spelled in the camel dialect.
 * Output is validated here once, so later code can rely on its type.
 */
import * as z from "zod";
import type { Json } from "../lib/json.ts";

interface ToolCall {
  readonly toolName: string;
  readonly toolArgs: Json;
  /** The caller, when it is not an agent. */
  readonly source?: "mcp_app";
}

interface Subagent {
  readonly transcriptPath?: string;
  readonly agentName: string;
  readonly agentDisplayName?: string;
  readonly agentId: string;
  readonly agentType: string;
  readonly parentAgentId?: string;
}

/** The input of each point, besides the session, the time and the folder. */
export interface HookInputs {
  sessionStart: { readonly source: "startup" | "resume" | "new"; readonly initialPrompt?: string };
  sessionEnd: {
    readonly reason: "complete" | "error" | "abort" | "timeout" | "user_exit";
    readonly finalMessage?: string;
    readonly error?: string;
  };
  userPromptSubmitted: { readonly prompt: string };
  userPromptTransformed: { readonly prompt: string; readonly transformedPrompt: string };
  preToolUse: ToolCall;
  postToolUse: ToolCall & { readonly toolResult: ToolResult };
  postToolUseFailure: ToolCall & { readonly error: string };
  permissionRequest: {
    readonly hookName: "permissionRequest";
    readonly toolName: string;
    readonly toolInput: Json;
    readonly permissionSuggestions: readonly Json[];
  };
  preMcpToolCall: {
    readonly serverName: string;
    readonly toolName: string;
    readonly arguments: Json;
    readonly toolCallId?: string;
    readonly _meta?: Readonly<Record<string, Json>>;
  };
  agentStop: {
    readonly transcriptPath?: string;
    readonly stopReason: "end_turn";
    readonly stop_hook_active: boolean;
  };
  subagentStart: Subagent & { readonly agentDescription?: string };
  subagentStop: Subagent & {
    readonly response: string;
    readonly stopReason: string;
    readonly stop_hook_active: boolean;
  };
  preCompact: {
    readonly transcriptPath?: string;
    readonly trigger: "manual" | "auto";
    readonly customInstructions: string;
  };
  errorOccurred: {
    readonly error: { readonly message: string; readonly name: string; readonly stack?: string };
    readonly errorContext: "model_call" | "tool_execution" | "system" | "user_input";
    readonly recoverable: boolean;
  };
  notification: { readonly message: string; readonly title?: string; readonly notification_type: NotificationType };
}

type NotificationType =
  | "agent_completed"
  | "agent_idle"
  | "shell_completed"
  | "shell_detached_completed"
  | "permission_prompt"
  | "elicitation_dialog";

/** Fields of every input. The time is added when the hook runs. */
interface CommonInput {
  readonly sessionId: string;
  readonly cwd: string;
}

const MAX_TEXT_CHARACTERS = 1024 * 1024;
const text = z.string().max(MAX_TEXT_CHARACTERS);
const words = text.exactOptional();
const flag = z.boolean().exactOptional();
const record = z.record(z.string(), z.json());

const ToolResult = z.object({
  resultType: z.enum(["success", "failure", "rejected", "denied", "timeout"]),
  textResultForLlm: text,
});
type ToolResult = z.infer<typeof ToolResult>;

const handled = { handled: flag, responseContent: words, handledBy: words };

/** Built on first use, so a run without hooks pays nothing. Unknown fields are dropped. */
export const outputSchemas = {
  sessionStart: z.lazy(() => z.object({ additionalContext: words, modifiedConfig: record.exactOptional() })),
  sessionEnd: z.lazy(() =>
    z.object({ suppressOutput: flag, cleanupActions: z.array(text).max(100).exactOptional(), sessionSummary: words }),
  ),
  userPromptSubmitted: z.lazy(() =>
    z.object({ modifiedPrompt: words, additionalContext: words, suppressOutput: flag, ...handled }),
  ),
  userPromptTransformed: z.lazy(() =>
    z.object({ modifiedTransformedPrompt: text.min(1, "must not be empty").exactOptional() }),
  ),
  preToolUse: z.lazy(() =>
    z.object({
      permissionDecision: z.enum(["allow", "deny", "ask"]).exactOptional(),
      permissionDecisionReason: words,
      modifiedArgs: z.json().exactOptional(),
      additionalContext: words,
      suppressOutput: flag,
      ...handled,
    }),
  ),
  postToolUse: z.lazy(() =>
    z.object({ modifiedResult: ToolResult.exactOptional(), additionalContext: words, suppressOutput: flag }),
  ),
  postToolUseFailure: z.lazy(() => z.object({ additionalContext: words })),
  permissionRequest: z.lazy(() =>
    z.object({ behavior: z.enum(["allow", "deny"]).exactOptional(), message: words, interrupt: flag }),
  ),
  preMcpToolCall: z.lazy(() => z.object({ metaToUse: record.nullable().exactOptional() })),
  agentStop: z.lazy(() => z.object({ decision: z.enum(["block", "allow"]).exactOptional(), reason: words })),
  subagentStart: z.lazy(() => z.object({ additionalContext: words })),
  subagentStop: z.lazy(() =>
    z.object({ decision: z.enum(["block", "allow"]).exactOptional(), reason: words, modifiedResponse: words }),
  ),
  preCompact: z.lazy(() => z.object({})),
  errorOccurred: z.lazy(() =>
    z.object({
      suppressOutput: flag,
      errorHandling: z.enum(["retry", "skip", "abort"]).exactOptional(),
      retryCount: z.number().int().min(0).max(10).exactOptional(),
      userNotification: words,
    }),
  ),
  notification: z.lazy(() => z.object({ additionalContext: words })),
} as const satisfies Record<keyof HookInputs, z.ZodType>;

/** Input and output types of all points. */
type HookPoints = {
  [P in keyof HookInputs]: { input: CommonInput & HookInputs[P]; output: z.infer<(typeof outputSchemas)[P]> };
};
export type HookPoint = keyof HookPoints;
export type HookInput<P extends HookPoint> = HookPoints[P]["input"];
export type HookOutput<P extends HookPoint> = HookPoints[P]["output"];

export const hookPoints = Object.keys(outputSchemas) as HookPoint[];

/** Points whose hooks decide whether something may happen. They fail closed by default. */
export const isAuthorising = (point: HookPoint): point is "preToolUse" | "permissionRequest" =>
  point === "preToolUse" || point === "permissionRequest";

/** Points that can block something, and can therefore fail closed. */
export const canRefuse = (point: HookPoint): boolean =>
  isAuthorising(point) || point === "agentStop" || point === "subagentStop";

export type Dialect = "camel" | "pascal";

/** Resolves a name from a configuration to a point. The spelling also selects the dialect of the hook's input. */
export function pointByName(name: string): { readonly point: HookPoint; readonly dialect: Dialect } | undefined {
  const camel = hookPoints.find((point) => point === name);
  if (camel !== undefined) return { point: camel, dialect: "camel" };
  const pascal = hookPoints.find((point) => pascalName(point) === name);
  return pascal === undefined ? undefined : { point: pascal, dialect: "pascal" };
}

/** Returns the PascalCase name of a point; two points have a different word there. */
export function pascalName(point: HookPoint): string {
  if (point === "userPromptSubmitted") return "UserPromptSubmit";
  if (point === "agentStop") return "Stop";
  return `${point.charAt(0).toUpperCase()}${point.slice(1)}`;
}

/** Returns the value that a matcher is compared with. Returns undefined when the point has no subject. */
export function subjectOf<P extends HookPoint>(point: P, input: HookInput<P>): string | undefined {
  const field = subjectFields[point];
  const value: unknown = field === undefined ? undefined : Reflect.get(input, field);
  return typeof value === "string" ? value : undefined;
}

export const subjectFields: Partial<Record<HookPoint, string>> = {
  sessionStart: "source",
  sessionEnd: "reason",
  preToolUse: "toolName",
  postToolUse: "toolName",
  postToolUseFailure: "toolName",
  permissionRequest: "toolName",
  subagentStart: "agentName",
  subagentStop: "agentName",
  preCompact: "trigger",
  notification: "notification_type",
};
