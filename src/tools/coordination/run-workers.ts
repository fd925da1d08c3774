import { quoted } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import { ToolError } from "../tool-error.ts";
import { type Coordination, NO_RESULT, type WorkerEnd, type WorkerSpec, type WorkerStep } from "./coordination.ts";
import type { ResultReceiver } from "./result-receiver.ts";
import { answersTo, limitSubmission, type Submission, type WorkerResult, withoutSubmission } from "./submission.ts";

export interface ReceivedWorker {
  readonly spec: WorkerSpec;
  readonly receiver: ResultReceiver;
  /** The success criteria of the request. */
  readonly criteria: readonly string[];
  /** Reported before it starts. */
  readonly steps: readonly WorkerStep[];
}

/**
 * Returns the results in the order of the workers, whichever ends first. A failure of one does not affect the others.
 */
export async function runWorkers(
  workers: readonly ReceivedWorker[],
  coordination: Coordination,
  how: { readonly concurrency: number; readonly signal: AbortSignal },
): Promise<readonly WorkerResult[]> {
  const results: WorkerResult[] = [];
  const waiting = [...workers.entries()];
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      how.signal.throwIfAborted();
      const [index, worker] = next;
      results[index] = await runOne(worker, coordination, how.signal);
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: how.concurrency }, lane));
  for (const ended of lanes) if (ended.status === "rejected") throw ended.reason;
  return results;
}

async function runOne(worker: ReceivedWorker, coordination: Coordination, signal: AbortSignal): Promise<WorkerResult> {
  const { spec, receiver, criteria } = worker;
  for (const step of worker.steps) coordination.step(spec.id, step);
  const end = await coordination.runWorker(spec, signal).catch((error: unknown): Ended => {
    signal.throwIfAborted();
    return { ...NOTHING_SPENT, ...failureOf(error) };
  });
  receiver.close();
  const taken = receiver.taken();
  const answers = criteria.length === 0 ? {} : { criteria: answersTo(criteria, taken) };
  const result = { ...resultOf(spec, end, taken), ...answers };
  coordination.step(spec.id, {
    stepId: "result",
    title: result.displayName,
    status: result.status,
    note: clip(result.summary, MAX_NOTE_CHARACTERS),
  });
  return result;
}

const MAX_NOTE_CHARACTERS = 1000;
const MAX_ERROR_CHARACTERS = 400;
const NOTHING_SPENT = { turns: 0, outputTokens: 0, durationMs: 0 };

/** Adds `defect`: not an outcome of a worker, but one the caller must see. */
type Ended = WorkerEnd | (Omit<WorkerEnd, "outcome"> & { readonly outcome: "defect" });

/** An accepted result counts, however the worker ended. Without one, the outcome becomes the result. */
function resultOf(spec: WorkerSpec, end: Ended, taken: Submission | undefined): WorkerResult {
  const { id, role, displayName } = spec;
  return {
    id,
    ...(end.agentId !== undefined && end.agentId !== id && { agentId: end.agentId }),
    role,
    displayName,
    ...limitSubmission(taken ?? withoutSubmission(end.outcome === "defect" ? "failed" : "blocked", whyNot(spec, end))),
    meta: { iterations: end.turns, outputTokensEstimate: end.outputTokens, durationMs: end.durationMs },
  };
}

function whyNot({ limits }: WorkerSpec, end: Ended): string {
  switch (end.outcome) {
    case "done":
      return NO_RESULT;
    case "cancelled":
      return "cancelled";
    case "error":
      return `error: ${clip(quoted(end.error ?? "unknown"), MAX_ERROR_CHARACTERS)}`;
    case "defect":
      return `the worker stopped because of a defect (${end.error ?? "unknown"})`;
    case "limit":
      if (end.limit === "outputTokens") return `limit of ${limits.outputTokens} output tokens reached`;
      if (end.limit === "durationMs") return `time limit of ${limits.durationMs / 1000} s reached`;
      return NO_RESULT;
  }
}

/** Expected failures keep their message; of a defect only the error name is reported. */
function failureOf(error: unknown): Pick<Ended, "outcome" | "error"> {
  if (error instanceof ToolError) return { outcome: "error", error: error.message };
  return { outcome: "defect", error: error instanceof Error ? error.name : "unknown" };
}
