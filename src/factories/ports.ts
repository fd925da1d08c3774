import type { Json } from "../lib/json.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { Emit } from "../protocol/event.ts";
import type { RunEnd, RunLimits } from "./run-fold.ts";

/** What a factory says of itself. */
export interface FactoryMeta {
  readonly name: string;
  readonly description: string;
  readonly phases: readonly { readonly title: string; readonly detail?: string | undefined }[];
  readonly argsSchema?: Json | undefined;
  readonly limits?: Readonly<Record<string, unknown>> | RunLimits | undefined;
}

/** A factory, where the program that has it is there. */
export interface Factory {
  readonly meta: FactoryMeta;
  /** Who may speak for its runs. */
  readonly owner: unknown;
  /** Runs its body; rejects with what that throws, or when the program is gone. */
  execute(execution: Execution, signal: AbortSignal): Promise<{ readonly result?: Json }>;
  /** Asks the body of this execution to stop; it need not. */
  abort(execution: { readonly runId: string; readonly executionToken: string }): void;
  /** False when its program has ended. */
  isThere(): boolean;
}

interface Execution {
  readonly runId: string;
  readonly executionToken: string;
  readonly args: Json;
}

export interface FactorySource {
  list(): readonly FactoryMeta[];
  find(name: string): Factory | undefined;
}

export interface AgentOptions {
  readonly label?: string | undefined;
  readonly schema?: Json | undefined;
  readonly model?: string | undefined;
  readonly reasoningEffort?: string | undefined;
  readonly contextTier?: string | undefined;
  readonly agent?: string | undefined;
}

export interface AgentWish extends AgentOptions {
  readonly runId: string;
  readonly prompt: string;
  readonly costUsd?: number;
}

/** An agent that works for a run: a task like all others. */
export interface WorkingAgent {
  readonly id: string;
  readonly toolCallId: string;
  /** Resolves when it rests, with its words; undefined when it has none to give, and then why. */
  readonly ended: Promise<AgentEnd>;
  stop(): Promise<void>;
}

export type AgentEnd =
  | { readonly response: string }
  /** `stoppedBy`: what it might cost was used up, or could not be told. */
  | { readonly why: string; readonly stoppedBy?: "cost" | "price" };

/** What is known of such an agent now. */
export interface AgentState {
  readonly status: string;
  readonly agentType: string;
  readonly displayName: string;
  readonly model?: string;
  readonly startedAt?: number;
  readonly completedAt?: number;
  readonly activeMs: number;
  readonly activity?: string;
  /** With all below it; null when a price is not known. */
  readonly costUsd: number | null;
}

/** Requests of the client that starts an attempt. */
export interface AttemptOptions {
  /** Notify the session's agent when the attempt settles. */
  readonly notifyOnComplete?: boolean | undefined;
  /** Write the names of phases into the session's transcript. */
  readonly logPhaseNames?: boolean | undefined;
}

/** A settled attempt, as the session's agent is told of it. */
export interface SettledAttempt {
  readonly runId: string;
  readonly factoryName: string;
  readonly attempt: number;
  readonly status: RunEnd["status"];
  readonly text: string;
}

export interface FactoriesPorts {
  readonly stamp: Stamp;
  readonly emit: Emit;
  readonly source: FactorySource;
  /** Throws a `TroupeError` where it may not be started. */
  startAgent(wish: AgentWish): Promise<WorkingAgent>;
  agentState(agentId: string): AgentState | undefined;
  /** Notifies the session's agent of an attempt whose starter asked for it. */
  onSettled?(settled: SettledAttempt): void;
}
