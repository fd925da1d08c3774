import type { RunLimits } from "./run-fold.ts";

/** Limits of one invocation; null removes a limit that was set before. */
export type GivenLimits = { readonly [K in keyof RunLimits]?: RunLimits[K] | null | undefined };

/** Timers count no further. */
const MAX_TIMEOUT_SECONDS = 2_147_483.647;
const whole = ["maxConcurrentSubagents", "maxTotalSubagents"] as const;
const positive = ["timeoutSeconds", "maxAiCredits"] as const;

/** What is wrong with these limits; undefined when nothing is. */
export function limitsProblem(limits: RunLimits): string | undefined {
  for (const name of whole) {
    const value = limits[name];
    if (value !== undefined && (!Number.isSafeInteger(value) || value <= 0))
      return `${name} must be a positive whole number`;
  }
  for (const name of positive) {
    const value = limits[name];
    if (value !== undefined && (!Number.isFinite(value) || value <= 0)) return `${name} must be a positive number`;
  }
  if ((limits.timeoutSeconds ?? 0) > MAX_TIMEOUT_SECONDS)
    return `timeoutSeconds must not exceed ${MAX_TIMEOUT_SECONDS}`;
  return undefined;
}

/** Later ones win, and null removes a limit; without any a run has no limit. */
export function mergedLimits(
  ...all: readonly (Readonly<Record<string, unknown>> | RunLimits | undefined)[]
): RunLimits {
  const merged: Record<string, number> = {};
  for (const limits of all) {
    for (const name of [...whole, ...positive]) {
      const value = (limits as Record<string, number | null | undefined> | undefined)?.[name];
      if (value === null) delete merged[name];
      else if (value !== undefined) merged[name] = value;
    }
  }
  return merged;
}
