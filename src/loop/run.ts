import type { EffectGuard } from "../lib/effect-guard.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { ModelRequest, Provider, Usage } from "../model/provider.ts";
import type { BinaryReference, Emit, EventData } from "../protocol/event.ts";
import type { Image, Message, ToolCall } from "../protocol/message.ts";
import type { Access } from "../protocol/permission.ts";
import type { Tool, ToolPorts } from "../tools/tool.ts";
import type { ToolErrorCode } from "../tools/tool-error.ts";
import type { RepeatedFailures } from "./repeated-failures.ts";

/**
 * Everything one agent needs for one run. The main agent and every subagent use the same interface. History,
 * permissions, budgets and storage are passed as functions, so the loop does not import them.
 */
export interface Run {
  readonly provider: Provider;
  /** Called when a request is about to be sent. It may schedule work that would delay a turn at another time. */
  whileModelWorks?(): void;
  readonly model: string;
  readonly system: string;
  readonly tools: readonly Tool[];
  /** Finds a tool that is callable but not listed in the model's requests. */
  findTool?(name: string): Tool | undefined;
  /** Adds tools to the list that the model sees. */
  showTools?(names: readonly string[]): void;
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly signal: AbortSignal;
  readonly stamp: Stamp;
  /** Whether deltas are emitted while a reply arrives. */
  readonly streaming: boolean;
  /** The parts that all requests of the run share. */
  readonly request: Omit<ModelRequest, "model" | "system" | "messages" | "tools">;
  readonly source: "top_level" | "subagent";
  readonly emit: Emit;
  readonly pendingMessages: MessageSource;
  /** Returns the next turn id. Ids count up within the answer to one message. */
  nextTurnId(): string;
  /** The id of the message that started the run, if one did. */
  readonly originatingMessageId?: string;
  /** Returns the conversation so far. It is extended as events are emitted, so a turn costs only what it adds. */
  history(): Promise<readonly Message[]>;
  permit(access: Access, call: JudgedCall): Promise<Permission>;
  /** Hooks before a call is judged and after it has ended; absent if there are none. */
  readonly hooks?: CallHooks;
  /** Set where another process can take the session over: calls run only while this one has it. */
  readonly effectGuard?: EffectGuard;
  /** Counts repeated failures of calls. `beforeModelCall` ends the run because of them. */
  readonly failures: Pick<RepeatedFailures, "failed" | "reset">;
  /** Services for tools beyond the call itself, such as files. */
  readonly ports: ToolPorts;
  /** Calls that wait for a client; absent if no call can outlive its process. */
  readonly clientCalls?: {
    /** Whether the call stays pending after the session closes, so that it can be resumed. */
    staysPending(toolCallId: string): boolean;
    /** Discards the pending requests of a call that has ended. */
    forget(toolCallId: string): void;
  };
  /** The current size of the context, for clients that display it. */
  usageInfo(): EventData<"session.usage_info">;
  /** Runs before each model call. Returns the limit that is reached, or undefined. */
  beforeModelCall(): Promise<LimitReached | undefined>;
  /** Runs before the run ends by itself. "continue" asks the model again. */
  beforeStopping(): Promise<"stop" | "continue">;
  /** Called after each model call, whatever its outcome. */
  spent(call: ModelCall): Promise<void>;
  /**
   * Stores content that is too large for the model and returns a replacement. Smaller content is returned unchanged.
   */
  limitOutput(content: string, toolName: string): Promise<string>;
  storeBinaries(binaries: { images: readonly Image[]; resources: readonly Image[] }): Promise<BinaryReference[]>;
}

/** A turn of an earlier process whose calls were waiting for a client when it ended. */
export interface PendingTurn {
  readonly turnId: string;
  /** The model's text that accompanied these calls. */
  readonly content: string;
  readonly calls: readonly PendingCall[];
  /** The process ended during a model call or its tool calls, so the model is asked again. */
  readonly isCutOff?: true;
}

/** A call whose start is in the log and of which nothing has run in this process. */
export interface PendingCall {
  readonly call: ToolCall;
  /** Tool to resume a permitted call with, regardless of the tools that are offered now. */
  readonly tool?: Tool;
  /** Fallback for a client's tool that no client has registered again. */
  readonly otherwise?: Tool;
  /** A hook requires the user's approval; the text of the question. */
  readonly ask?: string;
}

interface MessageSource {
  /** Emits the messages that arrived while the agent worked, before its next model call. */
  deliver(emit: Emit): Promise<void>;
}

export interface JudgedCall {
  readonly toolName: string;
  readonly toolCallId: string;
  /** The hook that approves the call. Sufficient if no rule applies; never overrides a rule. */
  readonly approvedBy?: string;
}

/**
 * Hooks around calls. They can deny, change or answer a call, or add to what the model reads. An approval counts only
 * where a person would otherwise be asked by default.
 */
export interface CallHooks {
  before(call: ToolCall, signal: AbortSignal): Promise<BeforeCall>;
  after(call: ToolCall, end: CallEnd, signal: AbortSignal): Promise<AfterCall>;
}

export type BeforeCall =
  | {
      readonly kind: "go";
      /** Replaces the model's arguments. Validated and judged in the same way. */
      readonly arguments?: ToolCall["arguments"];
      readonly approvedBy?: string;
      /** The user must approve the call; the text of the question. */
      readonly ask?: string;
      /** Appended to the result that the model reads. */
      readonly context?: string;
    }
  | { readonly kind: "deny"; readonly message: string }
  | { readonly kind: "answer"; readonly content: string };

export type CallEnd =
  | { readonly ok: true; readonly content: string }
  | { readonly ok: false; readonly code: ToolErrorCode; readonly message: string };

interface AfterCall {
  readonly content?: string;
  /** Turns the result into a failure with this text. */
  readonly failure?: string;
  readonly context?: string;
}

type Permission =
  /** `reads`: real paths outside the roots that the user allows this call to read. */
  | { readonly allowed: true; readonly reads?: readonly string[] }
  /** `rejected`: the user, or a hook with `interrupt`, rejected the call, which ends the answer. */
  | { readonly allowed: false; readonly message: string; readonly rejected?: boolean };

export interface LimitReached {
  readonly limit: "turns" | "tokens" | "cost" | "failures";
  readonly allowed: number;
  readonly used: number;
  readonly message: string;
  /** Set for a cost limit that could not be enforced. */
  readonly isPriceUnknown?: true;
}

export interface ModelCall {
  readonly turnId: string;
  readonly usage: Usage;
  /** True if the provider reported no usage and the figures are estimates. */
  readonly estimated: boolean;
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | undefined;
  /** The number of requests sent for this call. */
  readonly requests: number;
  readonly finishReason: string;
  /** The request's common parts, for accounting; absent for calls outside the loop. */
  readonly request?: Run["request"];
}
