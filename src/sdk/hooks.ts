import { defined } from "../lib/defined.ts";
import type { ToolResultObject } from "./define-tool.ts";

interface Common {
  readonly sessionId: string;
  readonly timestamp: Date;
  readonly workingDirectory: string;
}

/** The hook points of a session. A program is called at each, and may influence it if the point has an output. */
export interface HookPoints {
  sessionStart: {
    input: Common & { readonly source: "startup" | "resume" | "new"; readonly initialPrompt?: string };
    output: { additionalContext?: string };
  };
  userPromptSubmitted: {
    input: Common & { readonly prompt: string };
    output: { modifiedPrompt?: string; additionalContext?: string };
  };
  userPromptTransformed: {
    input: Common & { readonly prompt: string; readonly transformedPrompt: string };
    output: { modifiedTransformedPrompt?: string };
  };
  preToolUse: {
    input: Common & { readonly toolName: string; readonly toolArgs: unknown };
    output: {
      permissionDecision?: "allow" | "deny" | "ask";
      permissionDecisionReason?: string;
      modifiedArgs?: unknown;
      additionalContext?: string;
    };
  };
  preMcpToolCall: {
    input: Common & {
      readonly serverName: string;
      readonly toolName: string;
      readonly arguments: unknown;
      readonly toolCallId?: string;
      readonly _meta?: Readonly<Record<string, unknown>>;
    };
    output: { metaToUse?: Record<string, unknown> | null };
  };
  postToolUse: {
    input: Common & { readonly toolName: string; readonly toolArgs: unknown; readonly toolResult: ToolResultObject };
    output: { modifiedResult?: ToolResultObject; additionalContext?: string };
  };
  postToolUseFailure: {
    input: Common & { readonly toolName: string; readonly toolArgs: unknown; readonly error: string };
    output: { additionalContext?: string };
  };
  agentStop: {
    input: Common & {
      readonly stopReason?: string;
      readonly transcriptPath?: string;
      readonly stopHookActive?: boolean;
    };
    output: { decision?: "block"; reason?: string };
  };
  subagentStart: {
    input: Common & { readonly agentName?: string; readonly agentId?: string };
    output: { additionalContext?: string };
  };
  subagentStop: {
    input: Common & { readonly agentName?: string; readonly agentId?: string; readonly response?: string };
    output: { decision?: "block"; reason?: string; modifiedResponse?: string };
  };
  errorOccurred: {
    input: Common & {
      readonly error: string;
      readonly errorContext: "model_call" | "tool_execution" | "system" | "user_input";
      readonly recoverable: boolean;
    };
    output: { errorHandling?: "retry" | "skip" | "abort"; retryCount?: number; userNotification?: string };
  };
  sessionEnd: {
    input: Common & {
      readonly reason: "complete" | "error" | "abort" | "timeout" | "user_exit";
      readonly finalMessage?: string;
      readonly error?: string;
    };
    output: { sessionSummary?: string };
  };
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler that only listens returns nothing at all.
type Answer<P extends keyof HookPoints> = HookPoints[P]["output"] | undefined | void;
type Handler<P extends keyof HookPoints> = (
  input: HookPoints[P]["input"],
  invocation: { readonly sessionId: string },
) => Answer<P> | Promise<Answer<P>>;

/** `onPreToolUse` and so on. */
export type SessionHooks = { readonly [P in keyof HookPoints as `on${Capitalize<P>}`]?: Handler<P> };

/** Runs the handler for a point, if there is one. Converts dates and names from the wire's form. */
export async function invokeHook(
  hooks: SessionHooks | undefined,
  call: { readonly sessionId: string; readonly hookType: string; readonly input: Readonly<Record<string, unknown>> },
): Promise<unknown> {
  const name = `on${call.hookType.charAt(0).toUpperCase()}${call.hookType.slice(1)}`;
  const handlers: Readonly<Record<string, unknown>> = hooks ?? {};
  const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined;
  if (typeof handler !== "function") return undefined;
  const { cwd, timestamp, stop_hook_active: stopHookActive, toolArgs, ...rest } = call.input;
  return handler(
    {
      ...rest,
      ...(toolArgs !== undefined && { toolArgs: parseOrKeep(toolArgs) }),
      ...defined({ stopHookActive }),
      workingDirectory: cwd,
      timestamp: new Date(typeof timestamp === "number" ? timestamp : Date.now()),
    },
    { sessionId: call.sessionId },
  );
}

/** Some servers send arguments as text. */
function parseOrKeep(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
