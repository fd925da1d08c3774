/**
 * Runs of factories, which are workflows that extensions provide: the events of the wire, and the log records needed to
 * resume a run.
 */
import * as z from "zod";
import { barrier, count, ephemeral, event, JsonValue, text } from "./define-event.ts";

const Status = z.enum(["completed", "halted", "paused", "cancelled", "error"]);
/** The source of a pause: a client, or the run itself at a checkpoint. */
const PauseInfo = z.discriminatedUnion("type", [
  z.object({ type: z.literal("user") }),
  z.object({ type: z.literal("checkpoint"), key: text }),
]);
const Settled = z.object({
  runId: text,
  status: Status,
  consumedSubagents: count,
  consumedNanoAiu: count,
  elapsedMs: count,
  failureType: text.exactOptional(),
});
const limit = count.exactOptional();
const Limits = z.object({
  maxConcurrentSubagents: limit,
  maxTotalSubagents: limit,
  timeoutSeconds: limit,
  maxAiCredits: limit,
});
const Failure = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("factory_limit_reached"),
    runId: text,
    kind: z.enum(["maxTotalSubagents", "timeoutSeconds", "maxAiCredits"]),
    value: count,
  }),
  z.object({ type: z.literal("factory_accounting_incomplete"), runId: text, drainedNanoAiu: count }),
]);

export const factoryEvents = [
  /** A run has changed: clients that show it must read it again. */
  event("factory.run_updated", () => z.object({ runId: text, revision: count }), ephemeral),
  event("factory.run_started", () => z.object({ runId: text, factoryName: text, attempt: count }), ephemeral),
  event("factory.run_settled", () => Settled, ephemeral),
  // The same three under the names of SDK 1.0.15, which calls factories workflows.
  event("workflow.run_updated", () => z.object({ runId: text, revision: count }), ephemeral),
  event("workflow.run_started", () => z.object({ runId: text, workflowName: text, attempt: count }), ephemeral),
  event("workflow.run_settled", () => Settled, ephemeral),

  /** A run was created. The event contains the whole request, so that the run can be resumed by its id alone. */
  event(
    "troupe.factory_run",
    () =>
      z.object({
        runId: text,
        factoryName: text,
        description: text,
        phases: z.array(z.object({ title: text, detail: text.exactOptional() })),
        args: JsonValue,
        declaredLimits: Limits,
      }),
    barrier,
  ),
  /** A run starts or resumes, with these limits. */
  event("troupe.factory_attempt", () => z.object({ runId: text, attempt: count, limits: Limits }), barrier),
  event("troupe.factory_progress", () =>
    z.object({ runId: text, lines: z.array(z.object({ kind: z.enum(["log", "phase"]), text })) }),
  ),
  /** The result of a step, which is not executed again. */
  event("troupe.factory_step", () => z.object({ runId: text, stepId: text, result: JsonValue }), barrier),
  /** An agent works for the run. Its outcome is in its own events. */
  event(
    "troupe.factory_agent",
    () => z.object({ runId: text, agentId: text, toolCallId: text, label: text, requestedModel: text.exactOptional() }),
    barrier,
  ),
  /** The result of an agent call. The same call is not made again. */
  event("troupe.factory_answer", () => z.object({ runId: text, callId: text, result: JsonValue }), barrier),
  event(
    "troupe.factory_end",
    () =>
      z.object({
        runId: text,
        status: Status,
        /** The time of this attempt only. */
        activeMs: count,
        result: JsonValue.exactOptional(),
        error: text.exactOptional(),
        reason: text.exactOptional(),
        failure: Failure.exactOptional(),
        pauseInfo: PauseInfo.exactOptional(),
      }),
    barrier,
  ),
] as const;
