/** Model calls of a session, for tables and charts of cost. */
import type { SessionEvent } from "../protocol/event.ts";

export interface Usage {
  /** Empty for the main agent. */
  readonly agentId: string;
  readonly model: string;
  readonly at: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** Null when the price is unknown. */
  readonly costUsd: number | null;
  readonly durationMs: number;
  readonly requests: number;
}

/** All calls of a log, in order. What a rewind took back was paid for, and is included. */
export function usagesOf(events: Iterable<SessionEvent>): Usage[] {
  const usages: Usage[] = [];
  for (const { type, data, agentId = "", timestamp } of events) {
    if (type !== "troupe.usage") continue;
    const { model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costUsd, durationMs, attempts } = data;
    usages.push({
      agentId,
      model,
      at: Date.parse(timestamp),
      inputTokens,
      outputTokens,
      cacheReadTokens,
      cacheWriteTokens,
      costUsd,
      durationMs,
      requests: attempts,
    });
  }
  return usages;
}
