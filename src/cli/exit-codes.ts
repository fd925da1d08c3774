import type { ModelError } from "../model/model-error.ts";
import type { ErrorKind } from "../protocol/errors.ts";
import type { AutopilotVerdict } from "../session/modes/autopilot.ts";
import type { Outcome } from "../session/session.ts";

/** The exit codes of the process. They are part of the public interface: never renumber them. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  provider: 3,
  limit: 4,
  blocked: 5,
  unverified: 6,
  authentication: 7,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const ofError: Record<ErrorKind, ExitCode> = {
  usage: exitCodes.usage,
  configuration: exitCodes.usage,
  provider: exitCodes.provider,
  storage: exitCodes.failed,
  limit: exitCodes.limit,
  interrupted: exitCodes.interrupted,
  failed: exitCodes.failed,
};

export const exitCodeOfError = (kind: ErrorKind): ExitCode => ofError[kind];

/** A rejected key has its own code: a retry cannot help. */
export function exitCodeOfModelError(kind: ModelError["kind"]): ExitCode {
  if (kind === "internal") return exitCodes.failed;
  return kind === "authentication" ? exitCodes.authentication : exitCodes.provider;
}

/** In autopilot the verdict about the task counts, not the end of the last answer. */
export function exitCodeOf(outcome: Outcome, verdict?: AutopilotVerdict): ExitCode {
  return (verdict && exitCodeOfVerdict(verdict, outcome)) ?? exitCodeOfOutcome(outcome);
}

function exitCodeOfVerdict(verdict: AutopilotVerdict, outcome: Outcome): ExitCode | undefined {
  switch (verdict.kind) {
    case "complete":
      return exitCodes.done;
    case "blocked":
      return exitCodes.blocked;
    case "unverified":
      return exitCodes.unverified;
    case "out_of_budget":
      return exitCodes.limit;
    case "failed":
      return outcome.kind === "done" ? exitCodes.failed : undefined;
    case "aborted":
    case "left":
      return undefined;
  }
}

function exitCodeOfOutcome(outcome: Outcome): ExitCode {
  switch (outcome.kind) {
    case "done":
      return exitCodes.done;
    case "aborted":
      return exitCodes.interrupted;
    case "limit":
      return exitCodes.limit;
    case "error":
      return exitCodeOfModelError(outcome.error.kind);
    case "failed":
      return exitCodes.failed;
  }
}
