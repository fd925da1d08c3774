import type { ErrorKind } from "../protocol/errors.ts";
import type { Outcome } from "../session/session.ts";

/** What the process tells its caller. Part of the contract: never renumber. */
export const exitCodes = { done: 0, failed: 1, usage: 2, provider: 3, limit: 4, interrupted: 130 } as const;
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

export function exitCodeOf(outcome: Outcome): ExitCode {
  switch (outcome.kind) {
    case "done":
      return exitCodes.done;
    case "aborted":
      return exitCodes.interrupted;
    case "limit":
      return exitCodes.limit;
    case "error":
      return outcome.error.kind === "internal" ? exitCodes.failed : exitCodes.provider;
    case "failed":
      return exitCodes.failed;
  }
}
