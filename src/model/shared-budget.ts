/**
 * A budget that several processes share, for example that of a tenant. Every model call reserves its largest expected
 * usage before it is sent and settles its actual usage when it ends.
 */

import { defineProvider, type ModelRequest, noUsage, type Provider, type Usage } from "./provider.ts";

interface UsageAmount {
  readonly tokens: number;
  /** Null if the price is unknown. */
  readonly costUsd: number | null;
}

export interface SharedBudget {
  /**
   * Resolves when the call may be sent. Waits while other calls hold the rest of the budget. Rejects with a `ModelError`
   * that names the limit when the budget is used up.
   */
  reserve(expected: UsageAmount, signal: AbortSignal): Promise<Reservation>;
}

interface Reservation {
  /** Replaces the reservation by the actual usage. Calling it again is harmless. */
  settle(used: UsageAmount): void;
}

/** Used when the provider does not report the longest reply of its model. */
const USUAL_OUTPUT_TOKENS = 4_096;
const CHARACTERS_PER_TOKEN = 4;

/** Returns the provider with every call, including those for summaries and titles, paid from the budget. */
export function withSharedBudget(
  provider: Provider,
  budget: SharedBudget,
  costOf: (usage: Usage) => number | null,
): Provider {
  return defineProvider({
    id: provider.id,
    async *stream(request, signal) {
      const input = inputTokens(request);
      const spend = (usage: Usage): UsageAmount => ({
        tokens: usage.inputTokens + usage.outputTokens,
        costUsd: costOf(usage),
      });
      const most = { ...noUsage, inputTokens: input, outputTokens: request.maxOutputTokens ?? USUAL_OUTPUT_TOKENS };
      const reservation = await budget.reserve(spend(most), signal);
      let used = noUsage;
      let characters = 0;
      try {
        for await (const event of provider.stream(request, signal)) {
          if (event.type === "text" || event.type === "reasoning" || event.type === "call_delta") {
            characters += event.delta.length;
            used = { ...noUsage, inputTokens: input, outputTokens: Math.ceil(characters / CHARACTERS_PER_TOKEN) };
          }
          if (event.type === "end") used = event.usage ?? used;
          yield event;
        }
      } finally {
        reservation.settle(spend(used));
      }
    },
  });
}

function inputTokens({ system, messages, tools }: ModelRequest): number {
  return Math.ceil((system.length + JSON.stringify([messages, tools]).length) / CHARACTERS_PER_TOKEN);
}
