/**
 * Coordinated subagents: a few short, bounded workers that examine the same workspace from different sides. Each hands
 * in one structured result. This folder contains the pure parts; the code that runs workers is behind this port.
 */
import type { Tool } from "../tool.ts";

export interface Coordination {
  /** Returns why the session's model cannot run workers, or undefined when it can. */
  refused(): string | undefined;
  /** Returns the names of the caller's tools; no worker has more. */
  tools(): readonly string[];
  /**
   * Runs one worker to its end with the caller's model, folder and permissions. Resolves with `cancelled` when only the
   * worker was stopped. Rejects only with the signal's reason or for a defect.
   */
  runWorker(worker: WorkerSpec, signal: AbortSignal): Promise<WorkerEnd>;
  /** Reports a step to observers. A later step with the same id replaces an earlier one. */
  step(workerId: string, step: WorkerStep): void;
}

export interface WorkerSpec {
  /** Chosen by the coordinator, unique within the call. */
  readonly id: string;
  readonly role: string;
  readonly displayName: string;
  /** Replaces the usual system prompt. */
  readonly systemPrompt: string;
  /** Its only message. */
  readonly task: string;
  /** Names of all its tools, for the log. */
  readonly tools: readonly string[];
  /** Builds those tools from the caller's. The worker has no others. */
  provide(parentTools: readonly Tool[]): readonly Tool[];
  readonly limits: WorkerLimits;
  /** The call that its events are nested under. */
  readonly parentCallId: string;
}

export interface WorkerLimits {
  readonly turns: number;
  readonly outputTokens: number;
  readonly durationMs: number;
  /** For one model call. */
  readonly requestMs: number;
}

export interface WorkerEnd {
  /** Its id in the session, under which its result can be read later. */
  readonly agentId?: string;
  /** `done`: its run ended normally, with or without a result. */
  readonly outcome: "done" | "limit" | "cancelled" | "error";
  /** The limit that was reached, for `limit`. */
  readonly limit?: keyof WorkerLimits;
  /** The error message, for `error`. */
  readonly error?: string;
  readonly turns: number;
  /** As counted by the provider, else a quarter of the characters. */
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
/** The summary of a worker that ended without a result, normally or at its turn limit. */
export const NO_RESULT = "max iterations reached without submit_result";
export const MAX_WORKERS = 5;
export const DEFAULT_CONCURRENCY = 3;
