import type { RunLimits } from "./run-fold.ts";

/** Limits of one invocation. Null removes a limit that was set before. */
export type GivenLimits = { readonly [K in keyof RunLimits]?: RunLimits[K] | null | undefined };

/** The maximum delay of a timer. */
const MAX_TIMEOUT_SECONDS = 2_147_483.647;
const whole = ["maxConcurrentSubagents", "maxTotalSubagents"] as const;
const positive = ["timeoutSeconds", "maxAiCredits"] as const;

/** Returns the problem with these limits, or undefined if they are valid. */
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

/** Merges limits; later ones take precedence and null removes a limit. */
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
