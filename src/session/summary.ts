import { defined } from "../lib/defined.ts";
import type { EventData, WorkingDirectory } from "../protocol/event.ts";
import type { SessionSummary } from "../store/store.ts";
import type { Budget } from "./budget/budget.ts";
import { selection } from "./model-selection.ts";
import type { SessionOptions } from "./session-options.ts";

/** The facts from which a session's summary is made. */
export interface SummaryFacts {
  readonly sessionId: string;
  readonly context: WorkingDirectory;
  readonly model: string;
  readonly name: string | undefined;
  readonly title: string | undefined;
  readonly startedAt: number;
  readonly now: number;
  readonly budget: Budget;
  readonly detachedFrom: string | undefined;
}

export function summaryOfFacts(facts: SummaryFacts): SessionSummary {
  const { sessionId, context, model, name, title, startedAt, now, budget, detachedFrom } = facts;
  const { cwd, gitRoot, repository, branch } = context;
  return {
    sessionId,
    cwd,
    ...defined({ gitRoot, repository, branch, name, title }),
    model,
    createdAt: new Date(startedAt).toISOString(),
    updatedAt: new Date(now).toISOString(),
    turns: budget.session.calls,
    costUsd: budget.session.costUsd,
    ...defined({ detachedFrom }),
  };
}

interface LastFacts extends SummaryFacts, Pick<EventData<"session.shutdown">, "codeChanges"> {
  readonly error: string | undefined;
}

export function shutdownData(facts: LastFacts): EventData<"session.shutdown"> {
  const { budget, model, startedAt, error, codeChanges } = facts;
  return {
    shutdownType: error === undefined ? "routine" : "error",
    ...defined({ errorReason: error }),
    sessionStartTime: startedAt,
    totalApiDurationMs: Math.round(budget.session.durationMs),
    currentModel: model,
    codeChanges,
    modelMetrics: Object.fromEntries(
      [...budget.perModel].map(([name, { calls, usage }]) => [name, { requests: { count: calls }, usage }]),
    ),
  };
}

/** Returns the data of the first event of a new session. */
export function startData(options: SessionOptions, startedAt: number): EventData<"session.start"> {
  const { log, version, context, detachedFrom } = options;
  return {
    sessionId: log.sessionId,
    version: 1,
    producer: "troupe",
    copilotVersion: version,
    startTime: new Date(startedAt).toISOString(),
    ...selection(options),
    context,
    ...defined({ detachedFromSpawningParentSessionId: detachedFrom }),
  };
}

/** Returns the data of `session.resume`. */
export function resumeData(options: SessionOptions, eventCount: number): EventData<"session.resume"> {
  const { stamp, context } = options;
  return { resumeTime: new Date(stamp.now()).toISOString(), eventCount, ...selection(options), context };
}
