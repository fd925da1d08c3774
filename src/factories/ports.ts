import type { Json } from "../lib/json.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { Emit } from "../protocol/event.ts";
import type { RunEnd, RunLimits } from "./run-fold.ts";

/** A factory's description of itself. */
export interface FactoryMeta {
  readonly name: string;
  readonly description: string;
  readonly phases: readonly { readonly title: string; readonly detail?: string | undefined }[];
  readonly argsSchema?: Json | undefined;
  readonly limits?: Readonly<Record<string, unknown>> | RunLimits | undefined;
}

/** A factory whose program is connected. */
export interface Factory {
  readonly meta: FactoryMeta;
  /** The program that may act for its runs. */
  readonly owner: unknown;
  /** Runs the body. Rejects with the body's error, or if the program disconnects. */
  execute(execution: Execution, signal: AbortSignal): Promise<{ readonly result?: Json }>;
  /** Asks the body of this execution to stop. The body may ignore it. */
  abort(execution: { readonly runId: string; readonly executionToken: string }): void;
  /** Returns false once its program has ended. */
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

export interface AgentRequest extends AgentOptions {
  readonly runId: string;
  readonly prompt: string;
  readonly costUsd?: number;
}

/** An agent that works for a run. It is an ordinary task. */
export interface WorkingAgent {
  readonly id: string;
  readonly toolCallId: string;
  /** Resolves when the agent is idle or has ended, with its answer or the reason why there is none. */
  readonly ended: Promise<AgentEnd>;
  stop(): Promise<void>;
}

export type AgentEnd =
  | { readonly response: string }
  /** `stoppedBy`: the cost limit was reached, or a price was unknown. */
  | { readonly why: string; readonly stoppedBy?: "cost" | "price" };

/** The current state of an agent of a run. */
export interface AgentState {
  readonly status: string;
  readonly agentType: string;
  readonly displayName: string;
  readonly model?: string;
  readonly startedAt?: number;
  readonly completedAt?: number;
  readonly activeMs: number;
  readonly activity?: string;
  /** Includes all its subagents; null if a price is unknown. */
  readonly costUsd: number | null;
}

/** Options that a client passes when it starts an attempt. */
export interface AttemptOptions {
  /** Notify the session's agent when the attempt settles. */
  readonly notifyOnComplete?: boolean | undefined;
  /** Write the names of phases into the session's transcript. */
  readonly logPhaseNames?: boolean | undefined;
}

/** A settled attempt, as reported to the session's agent. */
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
  /** Throws a `TroupeError` if the agent must not be started. */
  startAgent(request: AgentRequest): Promise<WorkingAgent>;
  agentState(agentId: string): AgentState | undefined;
  /** Notifies the session's agent of an attempt that was started with `notifyOnComplete`. */
  onSettled?(settled: SettledAttempt): void;
}
