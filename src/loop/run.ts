import type { Stamp } from "../lib/stamp.ts";
import type { ModelRequest, Provider, Usage } from "../model/provider.ts";
import type { BinaryReference, Emit, EventData } from "../protocol/event.ts";
import type { Image, Message, ToolCall } from "../protocol/message.ts";
import type { Access } from "../protocol/permission.ts";
import type { Tool, ToolPorts } from "../tools/tool.ts";
import type { ToolErrorCode } from "../tools/tool-error.ts";
import type { RepeatedFailures } from "./repeated-failures.ts";

/**
 * Everything one agent needs for one run. The main agent and every subagent get the same shape; what the loop must
 * know of history, permissions, budgets and the disk comes in as functions, so it imports none of them.
 */
export interface Run {
  readonly provider: Provider;
  readonly model: string;
  readonly system: string;
  readonly tools: readonly Tool[];
  /** Tools that are not shown to the model and can be called all the same. */
  findTool?(name: string): Tool | undefined;
  /** Shows the model tools that it was not shown so far. */
  showTools?(names: readonly string[]): void;
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly signal: AbortSignal;
  readonly stamp: Stamp;
  /** Whether anyone watches the words arrive. */
  readonly streaming: boolean;
  /** What all its requests have in common. */
  readonly request: Omit<ModelRequest, "model" | "system" | "messages" | "tools">;
  readonly source: "top_level" | "subagent";
  readonly emit: Emit;
  readonly inbox: Inbox;
  /** Ids of turns count up within one answer to one message. */
  nextTurnId(): string;
  /** Id of the message that started the run; absent where none did. */
  readonly originatingMessageId?: string;
  /** The conversation so far. It grows as events are emitted, so a turn costs what it adds. */
  history(): Promise<readonly Message[]>;
  permit(access: Access, call: JudgedCall): Promise<Permission>;
  /** Who has a say before a call is judged and after it has ended; absent where nobody does. */
  readonly around?: AroundCalls;
  /** Counts calls that fail again and again; `beforeModelCall` ends the run for them. */
  readonly failures: Pick<RepeatedFailures, "failed" | "reset">;
  /** What tools reach beyond the call itself: files, and whatever later parts bring. */
  readonly ports: ToolPorts;
  /** Calls that wait for someone outside; absent where none can outlive its process. */
  readonly outside?: {
    /** It stays open when the session closes: whoever takes that up may go on with it. */
    isLeft(toolCallId: string): boolean;
    /** It has ended: what an earlier process asked for it is over. */
    forget(toolCallId: string): void;
  };
  /** How full the context is, for those who watch. */
  usageInfo(): EventData<"session.usage_info">;
  /** First place to attach: before each model call. Says why not, when a limit is used up. */
  beforeModelCall(): Promise<LimitReached | undefined>;
  /** Third place to attach: before the run ends by itself. "continue" asks the model again. (The second is `provider`.) */
  beforeStopping(): Promise<"stop" | "continue">;
  /** After each model call, whatever came of it. */
  spent(call: ModelCall): Promise<void>;
  /** Too large for the model: keeps the whole and returns what the model gets instead. */
  bound(content: string, toolName: string): Promise<string>;
  keepBinaries(what: { images: readonly Image[]; resources: readonly Image[] }): Promise<BinaryReference[]>;
}

/** A turn that an earlier life of the session left while calls of it waited for someone outside. */
export interface PendingTurn {
  readonly turnId: string;
  /** What the model said with these calls. */
  readonly content: string;
  readonly calls: readonly LeftCall[];
  /** The process ended while the model was asked, or its calls ran: the model is asked again. */
  readonly isCutOff?: true;
}

/** Its start is in the log, and nothing of it has run here. */
export interface LeftCall {
  readonly call: ToolCall;
  /** What it is gone on with, whatever is offered now: it was permitted. */
  readonly tool?: Tool;
  /** A client's: used where no client has brought it back. */
  readonly otherwise?: Tool;
  /** A hook wanted a person to look at it; what they are told. */
  readonly ask?: string;
}

interface Inbox {
  /** Says to the agent what came in while it worked, before its next model call. */
  deliver(emit: Emit): Promise<void>;
}

export interface JudgedCall {
  readonly toolName: string;
  readonly toolCallId: string;
  /** Someone who may have an opinion approves: enough where no rule speaks, never against one. */
  readonly approvedBy?: string;
}

/** Nothing here widens what is allowed: it can refuse, change, answer instead, or add to what the model reads. */
export interface AroundCalls {
  before(call: ToolCall, signal: AbortSignal): Promise<BeforeCall>;
  after(call: ToolCall, end: CallEnd, signal: AbortSignal): Promise<AfterCall>;
}

export type BeforeCall =
  | {
      readonly kind: "go";
      /** Instead of the model's; checked and judged like those. */
      readonly arguments?: ToolCall["arguments"];
      readonly approvedBy?: string;
      /** A person must look at it; what they are told. */
      readonly ask?: string;
      /** Added to what the model reads of the call. */
      readonly context?: string;
    }
  | { readonly kind: "deny"; readonly message: string }
  | { readonly kind: "answer"; readonly content: string };

export type CallEnd =
  | { readonly ok: true; readonly content: string }
  | { readonly ok: false; readonly code: ToolErrorCode; readonly message: string };

interface AfterCall {
  readonly content?: string;
  /** The result is to be taken for a failure with this text. */
  readonly failure?: string;
  readonly context?: string;
}

type Permission =
  /** `reads`: real paths outside the roots that a person lets this call read. */
  | { readonly allowed: true; readonly reads?: readonly string[] }
  /** Rejected by a person, a call ends the turn. */
  | { readonly allowed: false; readonly message: string; readonly rejected?: boolean };

export interface LimitReached {
  readonly limit: "turns" | "tokens" | "cost" | "failures";
  readonly allowed: number;
  readonly used: number;
  readonly message: string;
}

export interface ModelCall {
  readonly turnId: string;
  readonly usage: Usage;
  /** True when the provider reported no usage and the figures are ours. */
  readonly estimated: boolean;
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | undefined;
  /** Requests that were sent for it. */
  readonly attempts: number;
  readonly finishReason: string;
  /** The request as far as it matters for whoever counts; absent for calls outside the loop. */
  readonly request?: Run["request"];
}
