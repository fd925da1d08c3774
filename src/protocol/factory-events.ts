/** Runs of factories, workflows that extensions bring: what the wire is told of them, and what the log must know to go on. */
import * as z from "zod";
import { barrier, count, ephemeral, event, JsonValue, text } from "./define-event.ts";

const Status = z.enum(["completed", "halted", "paused", "cancelled", "error"]);
/** The one that paused a run: a client, or the run itself at a checkpoint. */
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
  /** Something about a run is other than it was: whoever shows it reads it again. */
  event("factory.run_updated", () => z.object({ runId: text, revision: count }), ephemeral),
  event("factory.run_started", () => z.object({ runId: text, factoryName: text, attempt: count }), ephemeral),
  event("factory.run_settled", () => Settled, ephemeral),
  // The same three under the names of SDK 1.0.15, which calls factories workflows.
  event("workflow.run_updated", () => z.object({ runId: text, revision: count }), ephemeral),
  event("workflow.run_started", () => z.object({ runId: text, workflowName: text, attempt: count }), ephemeral),
  event("workflow.run_settled", () => Settled, ephemeral),

  /** A run exists from here on. What it was asked for is here whole, so that it can be taken up by its id alone. */
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
  /** It is executed, for the first time or again; with these limits. */
  event("troupe.factory_attempt", () => z.object({ runId: text, attempt: count, limits: Limits }), barrier),
  event("troupe.factory_progress", () =>
    z.object({ runId: text, lines: z.array(z.object({ kind: z.enum(["log", "phase"]), text })) }),
  ),
  /** What a step came to: it is not taken again. */
  event("troupe.factory_step", () => z.object({ runId: text, stepId: text, result: JsonValue }), barrier),
  /** An agent works for it; what becomes of that one is told by its own events. */
  event(
    "troupe.factory_agent",
    () => z.object({ runId: text, agentId: text, toolCallId: text, label: text, requestedModel: text.exactOptional() }),
    barrier,
  ),
  /** What a call for an agent came to: the same call is not made again. */
  event("troupe.factory_answer", () => z.object({ runId: text, callId: text, result: JsonValue }), barrier),
  event(
    "troupe.factory_end",
    () =>
      z.object({
        runId: text,
        status: Status,
        /** Of this attempt alone. */
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
