/**
 * Coordinated subagents: a handful of short, bounded workers that look at the same workspace from different sides and
 * each hand in one structured result. What is pure is in this folder; who runs the workers is behind this port.
 */
import type { Tool } from "../tool.ts";

export interface Coordination {
  /** The reason why the session's model cannot run workers; undefined when it can. */
  refused(): string | undefined;
  /** Names of the tools of the agent that asks; no worker has more. */
  tools(): readonly string[];
  /**
   * Runs one worker to its end, in the model, folder and rights of the agent that asks. Ends with `cancelled` when the
   * worker alone was stopped; rejects only with the signal's reason or for a defect.
   */
  runWorker(worker: WorkerSpec, signal: AbortSignal): Promise<WorkerEnd>;
  /** Tells whoever watches; a later step with the same id takes the place of an earlier one. */
  step(workerId: string, step: WorkerStep): void;
}

export interface WorkerSpec {
  /** As the coordinator named it: unique within the call. */
  readonly id: string;
  readonly role: string;
  readonly displayName: string;
  /** In place of the usual system prompt. */
  readonly systemPrompt: string;
  /** Its only message. */
  readonly task: string;
  /** Names of all its tools, for the record. */
  readonly tools: readonly string[];
  /** Those tools, made from the ones of the agent that asks. The worker has these and no others. */
  provide(parentTools: readonly Tool[]): readonly Tool[];
  readonly limits: WorkerLimits;
  /** The call its events nest under. */
  readonly parentCallId: string;
}

export interface WorkerLimits {
  readonly turns: number;
  readonly outputTokens: number;
  readonly durationMs: number;
  /** For one call of the model. */
  readonly requestMs: number;
}

export interface WorkerEnd {
  /** Its id in the session, under which its result can be read later. */
  readonly agentId?: string;
  /** `done`: its run ended by itself, with or without a result. */
  readonly outcome: "done" | "limit" | "cancelled" | "error";
  /** Which one, for `limit`. */
  readonly limit?: keyof WorkerLimits;
  /** What went wrong, for `error`. */
  readonly error?: string;
  readonly turns: number;
  /** As the provider counted, else a quarter of the characters. */
  readonly outputTokens: number;
  readonly durationMs: number;
}

export interface WorkerStep {
  readonly stepId: string;
  readonly title: string;
  readonly status: "info" | "warning" | "running" | "completed" | "blocked" | "failed" | "skipped";
  readonly note?: string;
}

export const DEFAULT_LIMITS: WorkerLimits = {
  turns: 8,
  outputTokens: 20_000,
  durationMs: 30 * 60 * 1000,
  requestMs: 180_000,
};
/** The summary of a worker that ended, by itself or at its limit of turns, without handing in a result. */
export const NO_RESULT = "max iterations reached without submit_result";
export const MAX_WORKERS = 5;
export const DEFAULT_CONCURRENCY = 3;

/** Wires forbid dots in the names of tools; a model that was told of `subagents.run` still means this one. */
export function wireSafeName(name: string): string {
  return name.replaceAll(".", "_");
}
