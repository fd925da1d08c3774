/** Thresholds for compaction, as fractions of the model's context window. */
export interface CompactionOptions {
  /** False: no automatic compaction. */
  readonly enabled: boolean;
  /** From this share on, a summary is written while the agent continues. */
  readonly backgroundThreshold: number;
  /** From this share on, the agent waits for the summary. */
  readonly bufferThreshold: number;
}

export const DEFAULT_COMPACTION: CompactionOptions = {
  enabled: true,
  backgroundThreshold: 0.8,
  bufferThreshold: 0.95,
};

/** Returns the options from the arguments and the environment. Invalid values are ignored. */
export function compactionOptions(
  environment: Readonly<Record<string, string | undefined>>,
  wanted: Partial<CompactionOptions> = {},
): CompactionOptions {
  const background =
    fraction(wanted.backgroundThreshold) ??
    fraction(environment.TROUPE_BACKGROUND_COMPACTION_THRESHOLD) ??
    fraction(environment.COPILOT_BACKGROUND_COMPACTION_THRESHOLD) ??
    DEFAULT_COMPACTION.backgroundThreshold;
  const buffer =
    fraction(wanted.bufferThreshold) ??
    fraction(environment.TROUPE_BUFFER_EXHAUSTION_THRESHOLD) ??
    fraction(environment.COPILOT_BUFFER_EXHAUSTION_THRESHOLD) ??
    DEFAULT_COMPACTION.bufferThreshold;
  return {
    enabled: wanted.enabled ?? DEFAULT_COMPACTION.enabled,
    backgroundThreshold: Math.min(background, buffer),
    bufferThreshold: buffer,
  };
}

function fraction(given: number | string | undefined): number | undefined {
  const value = given === undefined || given === "" ? Number.NaN : Number(given);
  return value >= 0 && value <= 1 ? value : undefined;
}
